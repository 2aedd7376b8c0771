/* SPDX-License-Identifier: GPL-2.0 */
SECTIONS
{
	. = 0x1000000;
	.text : { . = ALIGN(8); *(.text.hot .text.hot.*) *(.text .text.fixup) *(.text.unlikely) }
	.rodata : { *(.rodata .rodata.*) }
	.data : { *(.data) }
	.bss : { *(.bss) }
	/DISCARD/ : { *(.comment .note*) }
}
