/* Matrices of experts: the rows of all of them, one expert's after the other's. Each z of the grid (y in matvec) takes
 * a slot: an expert and the pairs of a token and one of its experts that chose it (see pd_expert_slot). Without EXPERTS
 * there is one, of all tokens. Row i of x is that of the x_share pairs from x_share i on. The includer has the push
 * constants p, with experts, expert_rows and x_share. Defines:
 *   find_expert(slot)           false: none has it
 *   n_tokens                    tokens, or pairs of the slot
 *   row_of_expert(i)            in the matrix
 *   x_row(token), y_row(token)  of a token below n_tokens; past the last that one stands in */
layout(constant_id = PD_EXPERTS_ID) const bool EXPERTS = false;
uint n_tokens, expert_first_row, first_pair;

bool find_expert(uint slot)
{
    n_tokens = p.n_tokens;
    if (!EXPERTS) return true;
    n_tokens = p.experts.at[4 * slot + 1];
    expert_first_row = p.experts.at[4 * slot] * p.expert_rows;
    first_pair = p.experts.at[4 * slot + 2];
    return n_tokens != 0;
}

uint row_of_expert(uint i) { return EXPERTS ? expert_first_row + i : i; }
uint y_row(uint token)
{
    uint at = min(token, n_tokens - 1);
    return EXPERTS ? p.experts.at[first_pair + at] : at;
}
uint x_row(uint token) { return EXPERTS ? y_row(token) / p.x_share : y_row(token); }
