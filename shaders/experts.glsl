/* Matrices of experts: the rows of all of them, one expert's after the other's. Each z of the grid (y in matvec) takes
 * a slot: an expert and the pairs of a token and one of its experts that chose it (see pd_expert_slot). Without EXPERTS
 * there is one, of all tokens. Row i of x is that of the x_share pairs from x_share i on. The includer has the push
 * constants p, with experts, expert_rows and x_share. Defines:
 *   find_expert(slot, first)    false: it has no token from number `first` on
 *   n_tokens                    tokens, or pairs of the slot
 *   row_of_expert(i)            in the matrix
 *   y_row(token)                for a token below n_tokens
 *   x_row_for(row)              the row of x that this row of y comes from
 *   x_row(token)                past the last token that one stands in
 * and where X_ROWS is defined, the tokens of a tile:
 *   find_x_rows(first), tile_x_row(first, t)   x_row(first + t), which is looked up once; ends with a barrier */
layout(constant_id = PD_EXPERTS_ID) const bool EXPERTS = false;
uint n_tokens, expert_first_row, first_pair;

bool find_expert(uint slot, uint first)
{
    n_tokens = p.n_tokens;
    if (!EXPERTS) return true;
    n_tokens = p.experts.at[4 * slot + 1];
    expert_first_row = p.experts.at[4 * slot] * p.expert_rows;
    first_pair = p.experts.at[4 * slot + 2];
    return first < n_tokens;
}

uint row_of_expert(uint i) { return EXPERTS ? expert_first_row + i : i; }
uint y_row(uint token) { return EXPERTS ? p.experts.at[first_pair + token] : token; }
uint x_row_for(uint row) { return EXPERTS ? row / p.x_share : row; }
uint x_row(uint token) { return x_row_for(y_row(min(token, n_tokens - 1))); }

#if defined(X_ROWS)
shared uint x_rows[EXPERTS ? X_ROWS : 1];

void find_x_rows(uint first)
{
    if (!EXPERTS) return;
    for (uint t = gl_LocalInvocationID.x; t < X_ROWS; t += gl_WorkGroupSize.x) x_rows[t] = x_row(first + t);
    barrier();
}

uint tile_x_row(uint first, uint t) { return EXPERTS ? x_rows[t] : x_row(first + t); }
#endif
