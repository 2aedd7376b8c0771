// SPDX-License-Identifier: GPL-2.0
#include <linux/mm.h>

__attribute__((used)) static const char banner[] = "\nLinux version 0.1.0 fakelinux\n\nboots=@BOOTS@\n";

void start(void)
{
	handle_fault(MM_GENERATION);
	schedule();
}
