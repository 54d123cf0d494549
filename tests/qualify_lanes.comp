#version 460
/* One number of each subgroup operation that kernels may count on, for qualify_lanes.c. */
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_shuffle : require

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint LANES = 32;
layout(buffer_reference, std430) buffer Words { uint at[]; };
layout(push_constant) uniform Push { Words seen; };

shared uint all[256];

void main()
{
    uint me = gl_LocalInvocationID.x, lane = gl_SubgroupInvocationID, v = me * 2654435761u >> 12;
    uvec4 odd = subgroupBallot((v & 1) != 0);
    uint some = 0;
    if (lane % 3 == 1) some = subgroupAdd(v);
    all[me] = subgroupAdd(v);
    barrier();
    uint words[16] = {gl_SubgroupSize, lane, gl_SubgroupID, subgroupAdd(v), odd.x, odd.y,
        subgroupShuffle(v, (lane * 5 + 3) % LANES), subgroupShuffleXor(v, LANES / 2), subgroupBroadcast(v, LANES - 1),
        subgroupInclusiveAdd(v), subgroupExclusiveAdd(v), some, floatBitsToUint(subgroupMax(float(v))),
        subgroupBallotBitCount(odd), uint(subgroupElect()), all[gl_WorkGroupSize.x - 1 - me]};
    [[unroll]] for (uint i = 0; i < 16; i++) seen.at[16 * me + i] = words[i];
}
