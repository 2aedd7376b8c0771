// SPDX-License-Identifier: GPL-2.0
#include <linux/mm.h>
@BROKEN@
unsigned long handle_fault(unsigned long address)
{
	return alloc_page(address + @CODE@);
}
