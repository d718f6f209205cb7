// UDP, and connections of TCP, in a test's own network: members that answer with their name, and a client that reports who
// answered.

import { once } from 'node:events';
import type { TestNetwork } from '../host/namespaces.ts';

export const UDP_MEMBER_PORT = 5353;

/** Makes a host answer each datagram that is not empty with its name and the address that it came from. */
export function answerDatagrams(network: TestNetwork, host: string, port = UDP_MEMBER_PORT): () => void {
  const answer = `if (text.length > 0) socket.send('${host} ' + from.address, from.port, from.address)`;
  const open = (type: string) =>
    `{ const socket = require('dgram').createSocket({ type: '${type}', ipv6Only: ${type === 'udp6'} }).on('message', (text, from) => { ${answer}; }); socket.bind(${port}); }`;
  const child = network.start(host, process.execPath, '-e', open('udp4') + open('udp6'));
  return () => void child.kill('SIGKILL');
}

export interface Asked {
  /** The names of the hosts that answered, one for each datagram; '' without an answer, 'refused' after an ICMP error. */
  readonly by: readonly string[];
  /** The addresses from which members got the datagrams. */
  readonly from: ReadonlySet<string>;
}

export interface AskOptions {
  readonly count?: number;
  /** Each datagram from a new port, or all from one. */
  readonly isOneFlow?: boolean;
  /** The port of all datagrams of one flow; 0: any. */
  readonly localPort?: number;
  /** An address of the host; '' for its own choice. */
  readonly from?: string;
  readonly host?: string;
  /** A single datagram asks whether there is an answer; of several each counts, however busy the machine is. */
  readonly timeoutMs?: number;
}

/** Sends datagrams one after the other from a host. */
export async function askByDatagrams(
  network: TestNetwork,
  address: string,
  port: number,
  {
    count = 1,
    isOneFlow = false,
    localPort = 0,
    from = '',
    host = 'client',
    timeoutMs = count === 1 ? 400 : 2_000,
  }: AskOptions = {},
): Promise<Asked> {
  const type = address.includes(':') ? 'udp6' : 'udp4';
  const script = `
    const open = () => new Promise((resolve) => { const s = require('dgram').createSocket('${type}'); s.on('error', () => 0); s.bind({ port: ${localPort}, address: '${from}' || undefined }, () => s.connect(${port}, '${address}', () => resolve(s))); });
    const ask = (s) => new Promise((resolve) => {
      const over = setTimeout(() => resolve(''), ${timeoutMs});
      const end = (text) => { clearTimeout(over); resolve(text); };
      s.removeAllListeners('message').removeAllListeners('error');
      s.once('message', (text) => end(String(text)));
      s.once('error', () => end('refused'));
      s.send('?');
    });
    (async () => {
      let s;
      for (let n = 0; n < ${count}; n++) {
        if (s === undefined || ${!isOneFlow}) { s?.close(); s = await open(); }
        console.log(await ask(s));
      }
      s.close();
    })();`;
  const child = network.start(host, process.execPath, '-e', script);
  let output = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  await once(child, 'close');
  const answers = output
    .split('\n')
    .slice(0, -1)
    .map((line) => line.split(' '));
  return {
    by: answers.map(([name = '']) => name),
    from: new Set(answers.flatMap(([, address = '']) => (address === '' ? [] : [address]))),
  };
}

/** No port is used twice: the kernel may still know the connection that had it before. */
let nextPort = 10_000;

/** Opens connections one after the other from the client: the names of the hosts that answered, or the error. */
export async function askByConnections(
  network: TestNetwork,
  address: string,
  port: number,
  count: number,
  timeoutMs = 5_000,
): Promise<readonly string[]> {
  const firstPort = nextPort;
  nextPort += count;
  const script = `
    const ask = (localPort) => new Promise((resolve) => {
      let text = '';
      const socket = require('net').connect({ port: ${port}, host: '${address}', localPort });
      socket.setTimeout(${timeoutMs}, () => socket.destroy(new Error('timeout')));
      socket.on('data', (data) => { text += data; });
      socket.on('error', (error) => resolve(error.message.replaceAll(' ', '_')));
      socket.on('close', () => resolve(text || 'closed'));
    });
    (async () => { for (let n = 0; n < ${count}; n++) console.log(await ask(${firstPort} + n)); })();`;
  const child = network.start('client', process.execPath, '-e', script);
  let output = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  await once(child, 'close');
  return output.split('\n').slice(0, -1);
}
