// `make demo`: scales a Service under load, drains, kills and replaces its members, and breaks its manifest; no request
// fails; then a Gateway whose routes and certificate change, a change that is only planned, and a UDP Service whose members
// change. Runs on loopback in a temporary directory without root. Continues until Ctrl-C for experiments; with DEMO_ONCE=1 it
// ends after the table, with a status other than 0 if a request failed or HAProxy had a needless reload.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { styleText } from 'node:util';
import { DemoAgent } from './demo-agent.ts';
import { showEjection } from './demo-ejection.ts';
import { type GatewayReport, showGateway } from './demo-gateway.ts';
import { freePorts, startMembers } from './demo-members.ts';
import { PATH } from './demo-path.ts';
import { phases, type Stage } from './demo-phases.ts';
import { showPlan } from './demo-plan.ts';
import { DemoPool } from './demo-pool.ts';
import { endAll } from './demo-processes.ts';
import {
  faultsOf,
  faultsOfEjection,
  faultsOfGateway,
  faultsOfPlan,
  faultsOfUdp,
  printEjection,
  printGateway,
  printHeadings,
  printIntroduction,
  printPlan,
  printRow,
  printSummary,
  printUdp,
  type Row,
} from './demo-table.ts';
import { DemoTraffic } from './demo-traffic.ts';
import { showUdp, stopUdp } from './demo-udp.ts';

process.env.PATH = PATH;
const MEMBERS = 20;
const isOnce = !['', '0', undefined].includes(process.env.DEMO_ONCE);
const directory = await mkdtemp(join(tmpdir(), 'headgate-demo-'));
const agent = new DemoAgent(directory);
let isFinishing = false;
/** 0 only after a table without faults. */
let exitStatus = 1;

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => void finish(exitStatus));
try {
  const rows: Row[] = [];
  const stage = await setTheStage();
  await show(stage, rows);
  progress('a Gateway');
  const gateway = await gatewayOf(stage);
  progress('a member that answers 500');
  const [apiPort = 0, apiMembers = 0] = await freePorts(2);
  const ejection = await showEjection(agent, apiPort, apiMembers);
  progress('a change that is planned');
  const [planned = 0] = await freePorts(1);
  const plan = await showPlan(directory, agent, planned, stage.web.path);
  progress('');
  const udp = await showUdp(join(directory, 'udp'));
  const faults = [
    ...faultsOf(rows),
    ...faultsOfGateway(gateway),
    ...faultsOfEjection(ejection),
    ...faultsOfPlan(plan),
    ...faultsOfUdp(udp),
  ];
  printSummary(rows);
  printGateway(gateway);
  printEjection(ejection);
  printPlan(plan);
  printUdp(udp);
  for (const fault of faults) console.log(styleText(['red', 'bold'], `FAILED: ${fault}`));
  exitStatus = faults.length === 0 ? 0 : 1;
  if (!isOnce) await stay(stage);
  await finish(exitStatus);
} catch (error) {
  // Errors while the processes end are expected.
  if (!isFinishing) console.error(`The demonstration has failed: ${(error as Error).message}`);
  await finish(1);
}

async function setTheStage(): Promise<Stage> {
  progress(`Starting ${MEMBERS} members and the agent`);
  const [memberPort = 0, webPort = 0, singlePort = 0] = await freePorts(3);
  const members = await startMembers(1, MEMBERS, memberPort);
  const [first, spare] = [members.slice(0, 2), members.slice(2)];
  const web = new DemoPool(agent.manifests, 'web', webPort, memberPort);
  const single = new DemoPool(agent.manifests, 'single', singlePort, memberPort);
  await agent.prepare();
  await web.add(first);
  await single.add(members.slice(0, 1));
  await agent.start();
  await web.untilAnswered(first);
  return { agent, traffic: new DemoTraffic(web.url), web, single, memberPort, spare };
}

async function show(stage: Stage, rows: Row[]): Promise<void> {
  const { agent, traffic } = stage;
  progress('');
  printIntroduction(MEMBERS);
  printHeadings();
  await traffic.report();
  for (const phase of phases) {
    progress(phase.name);
    const before = await agent.reloads();
    const result = await phase.run(stage);
    const [report, after] = [await traffic.report(), await agent.reloads()];
    const row = { ...report, ...result, phase, reloads: after - before };
    rows.push(row);
    progress('');
    printRow(row);
  }
}

async function gatewayOf({ memberPort, web }: Stage): Promise<GatewayReport | string> {
  const [port = 0] = await freePorts(1);
  return showGateway(directory, agent, port, memberPort, web.members);
}

/** Continues the load until Ctrl-C. */
async function stay({ traffic, web, memberPort }: Stage): Promise<never> {
  const [spare] = await startMembers(MEMBERS + 10, MEMBERS + 10, memberPort);
  const command = (words: string): string => `bin/headgate ${words} --runtime-dir ${agent.runtimeDir}`;
  console.log(`
The load continues until Ctrl-C. Try:
  A request:            curl ${web.url}
  Edit the manifest:    ${web.path}
  Add an endpoint:      ${spare?.address} (${spare?.name} runs, but the manifest does not contain it)
  Agent's state:        ${command('why default/web')}
                        ${command('list')}
                        ${command('status')}
  Status page:          open http://${agent.address}/ in a browser
  Metrics:              curl http://${agent.address}/metrics
  Agent's log:          ${agent.log}
`);
  for (let requests = 0, failed = 0; ; await delay(1_000)) {
    const report = await traffic.report();
    requests += report.requests;
    failed += report.failed;
    progress(`Since the table: ${requests.toLocaleString('en')} requests, ${failed} failed`);
  }
}

/** Replaces the progress line on a terminal. */
function progress(text: string): void {
  if (process.stdout.isTTY && !isFinishing) process.stdout.write(`\r\x1b[K${text}`);
}

/** Ends the agent, then the members and the load, and removes all files. */
async function finish(status: number): Promise<never> {
  if (isFinishing) return new Promise<never>(() => undefined);
  progress('');
  isFinishing = true;
  await Promise.all([agent.stop(), stopUdp()]);
  await endAll();
  await rm(directory, { recursive: true, force: true });
  process.exit(status);
}
