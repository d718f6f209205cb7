// A client of each of several load balancers, in the namespace `client`: ten attempts a second, each on a new connection or
// with a datagram of its own.

import type { TestNetwork } from '../support/host/namespaces.ts';

interface Place {
  readonly key: string;
  readonly address: string;
}

/** Attempts that are remembered of each. */
const REMEMBERED = 10;

const SCRIPT = `
const PORT = 8080, TIMEOUT_MS = 8_000, SILENCE_MS = 1_000;
const say = (key, answer) => console.log(JSON.stringify([key, answer]));
function tcp(key, host) {
  const socket = require('net').connect({ host, port: PORT });
  let text = '', isOpen = false;
  const timer = setTimeout(() => end('silence'), SILENCE_MS);
  const over = setTimeout(() => end('closed'), TIMEOUT_MS);
  const end = (answer) => { clearTimeout(timer); clearTimeout(over); socket.destroy(); if (answer) say(key, answer); end2 = true; };
  let end2 = false;
  socket.on('connect', () => { isOpen = true; clearTimeout(timer); socket.write('GET / HTTP/1.1\\r\\nHost: a.example\\r\\nConnection: close\\r\\n\\r\\n'); });
  socket.on('data', (data) => { text += data; });
  const done = () => { if (!end2) end(text.startsWith('HTTP/1.1 200') ? 'answer' : text !== '' ? text.slice(9, 12) : isOpen ? 'closed' : 'refused'); };
  socket.on('error', done).on('close', done);
}
function udp(key, host) {
  const socket = require('dgram').createSocket('udp4');
  const timer = setTimeout(() => end('silence'), SILENCE_MS);
  let isOver = false;
  const end = (answer) => { if (isOver) return; isOver = true; clearTimeout(timer); socket.close(); say(key, answer); };
  socket.on('message', () => end('answer')).on('error', () => end('refused'));
  socket.connect(PORT, host, () => socket.send('?'));
}
for (const [key, host] of JSON.parse(process.argv[1]))
  setInterval(() => (key.endsWith('/udp') ? udp : tcp)(key, host), 100);
`;

export class Clients {
  /** Key → its last attempts, the newest last. */
  readonly #answers = new Map<string, string[]>();

  /** They end with the network. */
  static async start(network: TestNetwork, places: readonly Place[]): Promise<Clients> {
    const clients = new Clients();
    const wanted = JSON.stringify(places.map(({ key, address }) => [key, address]));
    const child = network.start('client', process.execPath, '-e', SCRIPT, wanted);
    let rest = '';
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const [key, answer] = JSON.parse(line) as [string, string];
        const last = clients.#answers.get(key) ?? [];
        clients.#answers.set(key, [...last, answer].slice(-REMEMBERED));
      }
    });
    return clients;
  }

  /** What the last attempts met, each once; [''] before the first. */
  last(key: string): readonly string[] {
    return [...new Set(this.#answers.get(key) ?? [''])].sort();
  }
}
