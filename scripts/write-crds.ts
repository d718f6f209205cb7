// Writes deploy/kubernetes/ from the schemas of AddressPool, AddressClaim and BGPPeer, or checks it with --check.

import { crdFiles } from './crds.ts';
import { writeDocument } from './write-document.ts';

for (const [path, text] of crdFiles()) writeDocument(path, text);
