// The nft of the tests of the kernel path. `NFT` names the executable, because test/support/haproxy/debian-matrix.sh has other
// versions than the installed one.

export const nftExecutable = process.env.NFT ?? 'nft';

/** Flags for an agent that uses this nft. */
export const nftFlags: readonly string[] = ['--nft', nftExecutable];
