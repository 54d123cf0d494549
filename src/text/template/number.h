/* Numbers as Python writes and reads them, whatever the locale. */
#ifndef PD_TEXT_TEMPLATE_NUMBER_H
#define PD_TEXT_TEMPLATE_NUMBER_H

#include "text/template/value.h"

enum { PD_NUMBER_SIZE = 32 };

/* The shortest digits that are this number and no other: "1.0", "1e+16", "1e-07", "nan". Gives the size. */
size_t pd_float_write(char out[PD_NUMBER_SIZE], double f);
/* As int(text, base) and float(text) read them; *ok: whether they would. An integer beyond 64 bits fails. */
peridot_status pd_int_read(int64_t *out, bool *ok, struct pd_render *r, struct pd_chars text, int64_t base);
void pd_float_read(double *out, bool *ok, struct pd_chars text);
/* Without what is behind the point. *ok: whether it is a number; fails where it is none of 64 bits. */
peridot_status pd_int_from_float(int64_t *out, bool *ok, struct pd_render *r, double f);

#endif
