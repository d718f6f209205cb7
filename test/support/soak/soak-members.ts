// The members of a soak, a process on their host: `soak-members.ts FIRST_PORT PORTS UDP_PORT ADDRESS...`. At each address each
// port answers requests with `ADDRESS:PORT`, and the port of UDP answers datagrams with that. Says `ready` once it serves.

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:http';

const [first = '', count = '', udpPort = '', ...addresses] = process.argv.slice(2);

for (let port = Number(first); port < Number(first) + Number(count); port++) {
  const server = createServer(({ socket }, response) => {
    response.end(`${socket.localAddress?.replace('::ffff:', '')}:${socket.localPort}`);
  });
  // A load balancer keeps its connections for as long as it likes.
  server.keepAliveTimeout = 0;
  await once(server.listen(port), 'listening');
}
for (const address of addresses) {
  const socket = createSocket('udp4');
  socket.on('message', (_, from) => socket.send(`${address}:${udpPort}`, from.port, from.address));
  socket.bind(Number(udpPort), address);
  await once(socket, 'listening');
}
console.log('ready');
