/* Sum over a workgroup of at most 256 invocations; every invocation gets it. Holds two barriers. */
shared float reduce_partial[256 / 4];   /* subgroups have 4 lanes or more */

float workgroup_sum(float x)
{
    x = subgroupAdd(x);
    barrier();   /* the last sum has been read */
    if (subgroupElect()) reduce_partial[gl_SubgroupID] = x;
    barrier();
    float sum = 0.0;
    for (uint i = 0; i < gl_NumSubgroups; i++) sum += reduce_partial[i];
    return sum;
}
