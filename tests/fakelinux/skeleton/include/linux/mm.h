/* SPDX-License-Identifier: GPL-2.0 */
#pragma once
#define MM_GENERATION @HEADER@

unsigned long alloc_page(unsigned long order);
unsigned long handle_fault(unsigned long address);
void schedule(void);
