// SPDX-License-Identifier: GPL-2.0
#include <linux/mm.h>

__attribute__((used)) static const char speed[] = "\nspeed=@SPEED@\n";

unsigned long alloc_page(unsigned long order)
{
	return 4096UL << order;
}
