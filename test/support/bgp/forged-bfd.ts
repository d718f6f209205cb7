// Packets of BFD (RFC 5880) that a machine sends in the name of another, which say that the session is down.

import type { TestNetwork } from '../host/namespaces.ts';

const SCRIPT = `
const socket = require('dgram').createSocket('udp4');
const [from, to] = process.argv.slice(1);
const packet = Buffer.alloc(24);
packet.set([0x23, 0x40, 3, 24]); // version 1, "neighbour says down"; state Down; multiplier; length
packet.writeUInt32BE(0x01020304, 4);
packet.writeUInt32BE(50_000, 12);
packet.writeUInt32BE(50_000, 16);
socket.bind(0, from, () => {
  socket.setTTL(255);
  let left = 100;
  const timer = setInterval(() => {
    socket.send(packet, 3784, to);
    if (--left === 0) { clearInterval(timer); socket.close(); }
  }, 20);
});
`;

/** Two seconds of packets of `from`, which must be an address of `host`, with the TTL of a neighbour. */
export async function forgeBfd(
  network: TestNetwork,
  host: string,
  { from, to }: { readonly from: string; readonly to: string },
): Promise<void> {
  await network.run(host, process.execPath, '-e', SCRIPT, from, to);
}
