// Where the demonstration finds programs: the folders of the system come first, because `npm run` puts those of npm's packages
// there, which have another `nft`, and because an ordinary user's PATH lacks those with haproxy and nft.

export const PATH = `/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:${process.env.PATH}`;
