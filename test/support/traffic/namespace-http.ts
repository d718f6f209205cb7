// HTTP between network namespaces: members that answer with their names, and clients that ask all the time.

import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../basics/eventually.ts';
import type { TestNetwork } from '../host/namespaces.ts';

/** What the clients ask for, and which members may answer. */
export interface Target {
  readonly address: string;
  readonly port: number;
  readonly host: string;
  readonly path?: string;
  readonly isTls?: boolean;
  readonly members: readonly string[];
}

export interface LoadResult {
  readonly done: number;
  /** The first 50. */
  readonly failed: readonly string[];
}

/** Each member answers on a port of its own, in the order of the names. */
export function serveNames(
  network: TestNetwork,
  host: string,
  first: number,
  names: readonly string[],
): void {
  const script = `
    ${JSON.stringify(names)}.forEach((name, at) =>
      require('http').createServer((_, response) => response.end(name)).listen(${first} + at, '::'));`;
  network.start(host, process.execPath, '-e', script);
}

/**
 * Four clients that connect for each request, and two that keep their connections, over a reload of HAProxy as well: they may
 * get an answer of before, and repeat a request on a connection that ends before its answer, as browsers do.
 */
export function startHttpLoad(network: TestNetwork) {
  const child = network.start('client', process.execPath, '-e', CLIENT);
  let output = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  let lists = 0;
  return {
    /** Resolves when they ask for these. */
    ask: async (...targets: readonly Target[]): Promise<void> => {
      lists++;
      child.stdin?.write(`${JSON.stringify(targets)}\n`);
      await eventually(
        async () => output.split('\n').length - 1,
        (lines) => lines === lists,
      );
    },
    end: async (): Promise<LoadResult> => {
      await delay(500);
      child.stdin?.end();
      await once(child, 'close');
      return JSON.parse(output.trim().split('\n').at(-1) ?? '');
    },
  };
}

const CLIENT = `
  const http = require('http'), https = require('https');
  let targets = [], done = 0, ended = false, rest = '';
  const failed = [];
  process.stdin.setEncoding('utf8')
    .on('data', (text) => {
      const lines = (rest + text).split('\\n');
      rest = lines.pop();
      for (const line of lines) {
        targets = JSON.parse(line);
        console.log('asks');
      }
    })
    .on('end', () => { ended = true; });
  const one = (target, members, agent) => new Promise((resolve) => {
    const { address, port, host, path = '/', isTls } = target;
    const end = (what) => {
      done++;
      if (what !== '' && failed.length < 50) failed.push(new Date().toISOString() + ' ' + address + ':' + port + path + ' ' + what);
      resolve();
    };
    const options = { host: address, port, path, agent, headers: { host }, servername: host, rejectUnauthorized: false, timeout: 5000 };
    const request = (isTls ? https : http).request(options, (response) => {
      let got = '';
      response.setEncoding('utf8').on('data', (data) => { got += data; })
        .on('end', () => end(response.statusCode === 200 && (agent || members().includes(got)) ? '' : response.statusCode + ' ' + got.slice(0, 50)))
        .on('error', (error) => end(error.message));
    });
    request.on('timeout', () => request.destroy(new Error('timeout')));
    request.on('error', (error) => (request.reusedSocket ? one(target, members, agent).then(resolve) : end(error.message)));
    request.end();
  });
  const work = async (isKept, at) => {
    const agents = { true: new https.Agent({ keepAlive: true }), false: new http.Agent({ keepAlive: true }) };
    for (let n = at; !ended; n++) {
      const now = targets, target = now[n % now.length];
      // An answer that was under way when the members changed may come from one of before.
      const members = () => [...target.members, ...(targets.find((each) => ['address', 'port', 'path', 'host'].every((key) => each[key] === target[key])) || target).members];
      if (target) await one(target, members, isKept ? agents[target.isTls === true] : false);
      await new Promise((resolve) => setTimeout(resolve, target ? 1 : 10));
    }
    agents.true.destroy();
    agents.false.destroy();
  };
  Promise.all([0, 1, 2, 3, 4, 5].map((at) => work(at > 3, at))).then(() => console.log(JSON.stringify({ done, failed })));`;
