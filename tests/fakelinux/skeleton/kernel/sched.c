// SPDX-License-Identifier: GPL-2.0
/* Comment number @COMMENT@. */
#include <linux/mm.h>

void schedule(void)
{
}
