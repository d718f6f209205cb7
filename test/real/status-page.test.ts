// The status page in a real browser: what it shows of a running agent, and that no text of an object can harm it.

import { once } from 'node:events';
import { mkdir, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import type { PageSummary, PageView } from '../../health/page-model.ts';
import { startHealthServer } from '../../health/server.ts';
import { requires } from '../support/basics/requirements.ts';
import { type RunningAgent, TestHost } from '../support/host/agent.ts';
import { Browser, type Page } from '../support/report/browser.ts';
import { detail, summary, view } from '../support/report/page-view.ts';
import { startMembers } from '../support/traffic/members.ts';
import { ask } from '../support/traffic/traffic.ts';
import { VIP_PORT } from '../support/values/service-objects.ts';

const test = requires(ava, { haproxy: true, programs: ['chromium'] });

let chromium: Browser;
test.before(async (t) => {
  t.timeout(60_000);
  chromium = await Browser.start();
});
test.after.always(() => chromium?.close());

const HOSTILE = `"><img src=x onerror="window.hurt=1"><script>window.hurt=1</script>\u202e{{x}}`;
const ROWS = "document.querySelectorAll('#rows > .item')";

test.serial('The page shows the load balancers and follows their manifests without a reload', async (t) => {
  const { host, agent, browser } = await opened(t);
  await browser.until(`${ROWS}.length === 1`);
  await browser.value('window.isTheSame = true');
  const text = await browser.text();
  for (const word of ['All is well', 'Alone', 'default/web', host.address(1), '2 of 2', 'served'])
    t.true(text.includes(word), `${word}\n${text}`);

  await host.serve({ name: 'shop', address: host.address(2) });
  await browser.until(`${ROWS}.length === 2 && ${ROWS}[0].innerText.includes('default/shop')`);
  await browser.until("document.querySelector('#headline').innerText.includes('All is well')");
  await host.serve({ name: 'shop', address: host.address(2), members: [] });
  await browser.until(`${ROWS}[0].innerText.includes('no ready member')`);
  await browser.until(
    "document.querySelector('#headline').innerText.includes('1 load balancer is not fully')",
  );
  await host.remove('shop.yaml');
  await browser.until(`${ROWS}.length === 1`);
  t.true(await browser.value('window.isTheSame'));

  // The agent is killed and starts again: the page shows it and reconnects automatically.
  const port = new URL(agent.url ?? '').port;
  await agent.kill();
  await browser.until("document.querySelector('#live').innerText.includes('Connection lost')");
  const complaints = [...browser.complaints];
  await host.launch(['--listen', `127.0.0.1:${port}`]);
  await browser.until("document.querySelector('#live').innerText.includes('Live')");
  await browser.until("document.querySelector('#headline').innerText.includes('All is well')");
  t.true(await browser.value('window.isTheSame'));
  t.deepEqual(
    complaints.filter((each) => !each.includes('ERR_')),
    [],
  );
});

test.serial('An opened load balancer shows its members as HAProxy sees them', async (t) => {
  const { host, browser } = await opened(t, { 'health-monitor': 'tcp', 'health-monitor-interval': '1s' });
  await browser.until(`${ROWS}.length === 1`);
  await browser.value("document.querySelector('.row').click()");
  await browser.until("document.querySelectorAll('#detail tbody tr').length === 2");
  await browser.until(
    "[...document.querySelectorAll('#detail tbody tr')].every((e) => e.innerText.includes('ONLINE'))",
  );
  const member = (last: number): string =>
    `[...document.querySelectorAll('#detail tbody tr')].find((e) => e.innerText.includes('${host.address(last)}:'))?.innerText`;

  // Nothing listens at the third: the check finds it.
  await host.serve({
    members: [host.address(11), { address: host.address(12), terminating: true }, host.address(13)],
    annotations: { 'health-monitor': 'tcp', 'health-monitor-interval': '1s' },
  });
  await browser.until(`${member(13)}?.includes('ERROR') && ${member(13)}.includes('refused')`);
  await browser.until(`${member(12)}?.includes('DRAINING')`);
  t.regex(await browser.value<string>(member(11)), /ONLINE/);

  // Traffic shows in the charts.
  const until = performance.now() + 30_000;
  const isDrawn =
    "Number(document.querySelector('#charts b').innerText) > 0 && document.querySelectorAll('#charts canvas').length === 6";
  while (!(await browser.value(isDrawn)) && performance.now() < until) await ask(host.place());
  await browser.until("/at most [1-9]/.test(document.querySelector('#charts figure').innerText)");

  // The address says what is open; a second click closes it.
  t.regex(await browser.value<string>('location.hash'), /open=default%2Fweb/);
  await browser.value('window.isOld = true; location.reload()');
  await browser.until(
    "!window.isOld && document.querySelectorAll('.row + tr #detail tbody tr').length === 3",
  );
  await browser.value("document.querySelector('[aria-expanded=true]').click()");
  await browser.until("document.querySelector('#detail') === null");

  // The headline leads to what it tells of.
  await host.serve({ name: 'shop', address: host.address(2) });
  await browser.until(`${ROWS}.length === 2`);
  await browser.until("document.querySelector('#headline').innerText.includes('1 member fails its check')");
  await browser.value("document.querySelector('#which a').click()");
  await browser.until(`${ROWS}.length === 1 && ${ROWS}[0].innerText.includes('default/web')`);
  t.is(await browser.value('location.hash'), '#only=trouble');
  t.is(await browser.value('document.activeElement.id'), 'load-balancers');
  t.deepEqual(browser.complaints, []);
});

test.serial(
  'An opened load balancer whose members are all down shows the members that have the connections',
  async (t) => {
    const { host, browser } = await opened(t, {
      'health-monitor': 'http',
      'health-monitor-interval': '1s',
      'health-monitor-expected-codes': '418',
    });
    await browser.until(`${ROWS}.length === 1`);
    await browser.value("document.querySelector('.row').click()");
    await browser.until(
      "[...document.querySelectorAll('#detail tbody tr')].filter((e) => e.innerText.includes('ERROR')).length === 2",
    );
    const socket = connect(VIP_PORT, host.address(1));
    t.teardown(() => socket.destroy());
    await once(socket, 'connect');
    await browser.until("document.querySelector('#detail').innerText.includes('1 open session')");
    await browser.until(
      "[...document.querySelectorAll('#detail tbody .number:not(.rate)')].map((e) => e.innerText).sort().join() === '0,1'",
    );
    t.deepEqual(browser.complaints, []);
  },
);

test.serial('A search, the filter and the pages find load balancers among many', async (t) => {
  const host = await TestHost.create(t);
  for (let at = 0; at < 60; at++)
    await host.serve({
      name: `web-${at}`,
      address: host.address(100 + at),
      members: at === 7 ? [] : [host.address(11)],
    });
  const agent = await host.start();
  const browser = await newPage(t);
  await browser.go(`${agent.url}/`);
  await browser.until(`${ROWS}.length === 50 && ${ROWS}[0].innerText.includes('default/web-7')`);
  await browser.value("document.querySelector('#next').click()");
  await browser.until(`${ROWS}.length === 10`);
  const type = (text: string): Promise<unknown> =>
    browser.value(
      `{ const field = document.querySelector('#search'); field.value = '${text}'; field.dispatchEvent(new Event('input')) }`,
    );
  await type(host.address(142));
  await browser.until(`${ROWS}.length === 1 && ${ROWS}[0].innerText.includes('default/web-42')`);
  await type('no such thing');
  await browser.until("!document.querySelector('#none').hidden");
  await type('');
  await browser.until(`${ROWS}.length === 50`);
  await browser.value("document.querySelector('#verdicts [data-key=trouble]').click()");
  await browser.until(`${ROWS}.length === 1 && ${ROWS}[0].innerText.includes('default/web-7')`);
  t.deepEqual(browser.complaints, []);
});

test.serial('The heads of the list sort it, by the keyboard too, and the address says how', async (t) => {
  const { host, agent, browser } = await opened(t);
  await host.serve({
    name: 'all',
    address: host.address(2),
    members: [11, 12, 13].map((at) => host.address(at)),
  });
  await host.serve({ name: 'none', address: host.address(3), members: [] });
  const names = `[...${ROWS}].map((e) => e.querySelector('.name').innerText.replace('default/', '')).join()`;
  const sorting =
    "[...document.querySelectorAll('#heads [data-column]')].filter((e) => e.ariaSort !== 'none').map((e) => e.innerText + ' ' + e.ariaSort).join()";
  const press = async (column: string): Promise<void> => {
    await browser.value(`document.querySelector('[data-column=${column}] button').focus()`);
    for (const type of ['keyDown', 'keyUp'])
      await browser.send('Input.dispatchKeyEvent', { type, key: 'Enter', code: 'Enter', text: '\r' });
  };
  await browser.until(`${names} === 'none,all,web'`);
  t.is(await browser.value(sorting), 'State ↓ descending'.replace(' ↓', ''));
  for (const [column, order, words, hash] of [
    ['name', 'all,none,web', 'Name ascending', '#sort=name'],
    ['name', 'web,none,all', 'Name descending', '#sort=-name'],
    ['name', 'none,all,web', 'State descending', '#'],
    ['members', 'all,web,none', 'Ready members descending', '#sort=-members'],
    ['members', 'none,web,all', 'Ready members ascending', '#sort=members'],
    ['state', 'none,all,web', 'State descending', '#'],
    ['state', 'web,all,none', 'State ascending', '#sort=state'],
  ] as const) {
    await press(column);
    await browser.until(`${names} === '${order}'`);
    t.is(await browser.value(sorting), words);
    t.is(await browser.value('location.hash || "#"'), hash);
  }
  await browser.go('about:blank');
  await browser.go(`${agent.url}/#sort=-members`);
  await browser.until(`${names} === 'all,web,none'`);
  t.is(await browser.value(sorting), 'Ready members descending');
  await browser.go('about:blank');
  await browser.go(`${agent.url}/#sort=%3Cscript%3E`);
  await browser.until(`${names} === 'none,all,web'`);
  t.is(await browser.value(sorting), 'State descending');
  t.deepEqual(browser.complaints, []);
});

test.serial('The list can be filtered by a namespace, also by an address that names it', async (t) => {
  const { host, agent, browser } = await opened(t);
  await host.serve({ name: 'cart', namespace: 'shop', address: host.address(2) });
  const names = `[...${ROWS}].map((e) => e.querySelector('.name').innerText).join()`;
  const options = "[...document.querySelector('#namespace').options].map((e) => e.text).join()";
  await browser.until(`${names} === 'default/web,shop/cart'`);
  await browser.until(`${options} === 'All namespaces,default,shop'`);
  const choose = (namespace: string): Promise<unknown> =>
    browser.value(
      `{ const field = document.querySelector('#namespace'); field.value = '${namespace}'; field.dispatchEvent(new Event('change')) }`,
    );
  await choose('shop');
  await browser.until(`${names} === 'shop/cart'`);
  t.is(await browser.value('location.hash'), '#namespace=shop');
  await choose('');
  await browser.until(`${names} === 'default/web,shop/cart'`);
  await browser.go('about:blank');
  await browser.go(`${agent.url}/#namespace=gone`);
  await browser.until("!document.querySelector('#none').hidden");
  t.is(await browser.value("document.querySelector('#namespace').value"), 'gone');
  t.deepEqual(browser.complaints, []);
});

test.serial(
  'Rows have the traffic of their load balancer, and so has the one that is opened later',
  async (t) => {
    const { host, browser } = await opened(t);
    await host.serve({ name: 'idle', address: host.address(2) });
    const socket = connect(VIP_PORT, host.address(1));
    t.teardown(() => socket.destroy());
    await once(socket, 'connect');
    const cells = (name: string): string =>
      `[...${ROWS}].find((e) => e.innerText.includes('default/${name}')).querySelectorAll('.number')`;
    await browser.until(`${ROWS}.length === 2`);
    const end = performance.now() + 30_000;
    while (!(await browser.value(`Number(${cells('web')}[1].innerText) > 1`)) && performance.now() < end)
      await ask(host.place());
    await browser.until(`${cells('web')}[0].innerText === '1' && Number(${cells('web')}[1].innerText) > 1`);
    await browser.until(`[...${cells('idle')}].map((e) => e.innerText).join() === '0,0'`);
    const row = `[...${ROWS}].find((e) => e.innerText.includes('default/web'))`;
    await browser.value(`${row}.querySelector('.key').click()`);
    await browser.until("document.querySelectorAll('#detail canvas').length === 5");
    t.true(
      await browser.value(
        `${row}.querySelector('.small-chart polyline').getAttribute('points').includes(' ')`,
      ),
      'a small one in the row, too',
    );
    await browser.until("/at most [1-9]/.test(document.querySelector('#detail figure').innerText)");
    t.deepEqual(browser.complaints, []);
  },
);

test.serial('A load balancer has the traffic that scrapes have seen before any page was open', async (t) => {
  const host = await TestHost.create(t);
  await startMembers(t, host, 1);
  await host.serve();
  const agent = await host.start();
  const socket = connect(VIP_PORT, host.address(1));
  t.teardown(() => socket.destroy());
  await once(socket, 'connect');
  const openConnections = async (): Promise<number> =>
    (await agent.metrics())('headgate_listener_open_connections', { service: 'web' });
  await host.until('a scrape sees the connection', async () => (await openConnections()) === 1);
  socket.destroy();
  await host.until('a scrape sees that it has ended', async () => (await openConnections()) === 0);
  const browser = await newPage(t);
  await browser.go(`${agent.url}/#open=default%2Fweb`);
  await browser.until(
    "/^Open connections\\s+0\\s+at most 1\\b/.test(document.querySelectorAll('#detail figure')[1]?.innerText)",
  );
  t.deepEqual(browser.complaints, []);
});

test.serial('The page links a dashboard, also that of the open load balancer', async (t) => {
  const host = await TestHost.create(t);
  await host.serve();
  const dashboard =
    'https://grafana.example.org/d/headgate?orgId=1&var-namespace={namespace}&var-service={name}';
  const agent = await host.start(['--dashboard-url', dashboard]);
  const browser = await newPage(t);
  await browser.go(`${agent.url}/#open=default%2Fweb`);
  const links =
    "[...document.querySelectorAll('a[target]')].filter((e) => e.checkVisibility()).map((e) => e.href + ' ' + e.rel)";
  await browser.until(`${links}.length === 2`);
  const place = 'https://grafana.example.org/d/headgate?orgId=1';
  t.deepEqual(await browser.value(links), [
    `${place} noopener noreferrer`,
    `${place}&var-namespace=default&var-service=web noopener noreferrer`,
  ]);
  t.deepEqual(browser.complaints, []);
});

test.serial('A line shows when the state was written to disk, and what cannot be written', async (t) => {
  const { host, browser } = await opened(t);
  const card =
    "[...document.querySelectorAll('#vitals > div')].find((e) => e.innerText.startsWith('State on disk')).innerText";
  await browser.until(`/Up to date, written [0-9]{2}:[0-9]{2}$/.test(${card})`);
  // A folder with the name of the file.
  await rm(join(host.stateDir, 'last-ports'));
  await mkdir(join(host.stateDir, 'last-ports', 'x'), { recursive: true });
  await host.serve({ name: 'shop', address: host.address(2) });
  await browser.until(
    `${card}.includes('Cannot be written, in ${host.stateDir}') && ${card}.includes('last-ports: ')`,
  );
  t.deepEqual(browser.complaints, []);
});

test.serial('A listener of the kernel is not called unserved, and the kernel has a line', async (t) => {
  const [listener] = detail.listeners;
  const [row] = view.list.rows;
  if (listener === undefined || row === undefined) throw new Error('There is no row');
  const why = 'The kernel forwards nothing: nft is missing';
  const shown = (fault: string): PageView => ({
    ...view,
    summary: { ...summary, kernel: { loadBalancers: 1, fault, sync: 'on' } },
    list: {
      ...view.list,
      rows: [{ ...row, ports: ['UDP 53'], isOfKernel: true, open: undefined, rate: 2.5 }],
    },
    detail: {
      ...detail,
      open: undefined,
      rate: 2.5,
      history: { ...detail.history, open: [null, null] },
      listeners: [
        {
          ...listener,
          ...{ protocol: 'UDP', port: 53, engine: 'kernel', sessions: undefined, sessionRate: undefined },
          members: listener.members.map((each) => ({ ...each, sessions: undefined, sessionRate: undefined })),
        },
      ],
    },
  });
  const browser = await newPage(t);
  await browser.go(`${await served(t, shown(''))}/#open=default%2Fweb`);
  await browser.until("document.querySelectorAll('#detail tbody tr').length === 1");
  const text = await browser.text();
  for (const word of ['Forwards ports of 1 load balancer, flows are copied to the peer', 'UDP 53 (kernel)'])
    t.true(text.includes(word), `${word}\n${text}`);
  t.regex(text, /on 192\.0\.2\.1, by the kernel\n/);
  t.is(
    await browser.value("[...document.querySelectorAll('#detail .number')].map((e) => e.innerText).join()"),
    'Sessions,New/s,–,–',
  );
  t.is(
    await browser.value(
      "[...document.querySelectorAll('#detail figure')].filter((e) => e.checkVisibility()).length",
    ),
    3,
    'open connections and the time to answer are unknown',
  );
  await browser.go('about:blank');
  await browser.go(`${await served(t, shown(why))}/`);
  await browser.until(
    `document.querySelector('#vitals').innerText.includes('Does not forward all\\n${why}')`,
  );
  t.deepEqual(browser.complaints, []);
});

test.serial('A Gateway has the Services behind its routes, and such a Service the Gateway', async (t) => {
  const pool = {
    ...{ key: 'pool:shop/api', service: HOSTILE, verdict: 'members down' as const },
    ...{ ready: 0, down: 2, members: 2, problems: 1 },
  };
  const folded: PageView = {
    ...view,
    detail: { ...detail, listeners: [], pools: [pool], morePools: 3, users: ['gateway:infra/edge'] },
  };
  const browser = await newPage(t);
  await browser.go(`${await served(t, folded)}/#open=default%2Fweb`);
  await browser.until("document.querySelectorAll('#detail .pools tbody tr').length === 1");
  const text: string = await browser.value("document.querySelector('#detail .pools').innerText");
  for (const word of [HOSTILE, '1 problem', 'members down', '0 of 2, 2 down', 'And 3 more Services'])
    t.true(text.includes(word), `${word}\n${text}`);
  const links = "[...document.querySelectorAll('#detail .pools a')].map((e) => e.getAttribute('href'))";
  t.deepEqual(await browser.value(links), ['#open=gateway%3Ainfra%2Fedge', '#open=pool%3Ashop%2Fapi']);
  t.deepEqual(browser.complaints, []);
});

test.serial(
  'Problems stand by reason, each with a link to its load balancer, and a link scrolls to it',
  async (t) => {
    const { host, agent, browser } = await opened(t);
    // Well, with names before those in trouble, so that these would be out of view if the names decided.
    for (let at = 0; at < 40; at++) await host.serve({ name: `a-${at}`, address: host.address(100 + at) });
    for (const name of ['x', 'y', 'z'])
      await host.serve({ name, address: host.address(150), annotations: { algorithm: 'wrong' } });
    await host.serve({ name: 'none', address: host.address(151), members: [] });
    const reasons = "[...document.querySelectorAll('#problems > li summary')].map((e) => e.innerText.trim())";
    await browser.until(`${reasons}.some((e) => e.endsWith('InvalidAnnotation, 3 times'))`);
    await browser.until(`${ROWS}.length >= 40`);
    const first = `[...${ROWS}].slice(0, 5).map((e) => e.querySelector('.key').innerText)`;
    await browser.until(`${first}.slice(0, 2).join() === 'default/y,default/z'`);
    t.true(((await browser.value(first)) as string[]).includes('default/none'));

    const link = 'document.querySelector(\'#problems > li a[href="#open=default%2Fy"]\')';
    await browser.value(`${link}.closest('details').open = true`);
    await browser.value(`${link}.click()`);
    const inView =
      "(() => { const box = document.querySelector('#detail')?.getBoundingClientRect(); return box !== undefined && box.top >= 0 && box.top < innerHeight })()";
    const isOpen = (key: string): string =>
      `document.querySelector('#detail')?.getAttribute('aria-label') === 'Load balancer ${key}'`;
    await browser.until(`${isOpen('default/y')} && ${inView}`);

    // A link that a user got: the row is far below.
    await browser.go('about:blank');
    await browser.go(`${agent.url}/#open=default%2Fa-9`);
    await browser.until(`${isOpen('default/a-9')} && ${inView} && scrollY > 0`);
    t.deepEqual(browser.complaints, []);
  },
);

test.serial('Texts of objects are text on the page and never run', async (t) => {
  const { host, browser } = await opened(t);
  await host.serve({ annotations: { algorithm: HOSTILE } });
  await host.write('<img src=x onerror=hurt()>.yaml', 'kind: {');
  await browser.until("document.querySelectorAll('#problems > li').length === 2");
  const text = await browser.text();
  t.true(text.includes('<img src=x onerror='), text);
  t.is(await browser.value('typeof window.hurt'), 'undefined');
  t.deepEqual(browser.complaints, []);
});

test.serial('Any text of the agent is text on the page, and fits on a phone', async (t) => {
  const long = `${HOSTILE}${'x'.repeat(300)}`;
  const url = await served(t, everyTextIs(long));
  const browser = await newPage(t);
  for (const width of [320, 390, 1280]) {
    await browser.resize(width, 800);
    await browser.go('about:blank');
    await browser.go(`${url}/#open=${encodeURIComponent(long)}`);
    await browser.until("document.querySelectorAll('#detail tbody tr').length === 1");
    t.is(await browser.value('document.documentElement.scrollWidth'), width);
    t.deepEqual(
      await browser.value(
        "[...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && e.getClientRects().length > 0 && !e.closest('svg')).map((e) => e.outerHTML.slice(0, 80))",
      ),
      [],
    );
  }
  t.is(await browser.value('typeof window.hurt'), 'undefined');
  t.is(await browser.value("document.querySelectorAll('img').length"), 1, 'the mark of the page itself');
  t.deepEqual(browser.complaints, []);
});

test.serial('Each virtual router has a line with its state on this host and on the peer', async (t) => {
  const since = '2026-01-01T00:00:00.000Z';
  const first = { name: 'vrrp-51', state: 'backup', since, priority: 150, anchors: ['192.0.2.3'], vips: 4 };
  const second = { name: 'vrrp-52', state: 'master', since, priority: 200, anchors: ['192.0.2.4'], vips: 7 };
  const url = await served(t, {
    ...view,
    summary: {
      ...summary,
      role: 'master',
      instances: [
        { ...first, peerState: 'master' },
        { ...second, peerState: '' },
      ],
    },
  });
  const browser = await newPage(t);
  await browser.go(`${url}/`);
  const lines =
    "[...document.querySelectorAll('#routers tr')].map((e) => e.innerText.split(/\\s*[\\n\\t]\\s*/))";
  await browser.until(`${lines}.length === 2`);
  t.like(await browser.value(lines), [
    ['vrrp-51', '192.0.2.3', '○ backup'],
    ['vrrp-52', '192.0.2.4', '● master'],
  ]);
  const cells = (line: number): Promise<string> =>
    browser.value(
      `[...document.querySelectorAll('#routers tr')[${line}].children].map((e) => e.innerText).slice(2).join('|')`,
    );
  t.is(await cells(0), '● master|4|150');
  t.is(await cells(1), '… unknown|7|200');
  t.true((await browser.text()).includes('master of 1 of 2 virtual routers'));

  // Badges are whole on a phone.
  await browser.resize(390, 844);
  t.deepEqual(
    await browser.value(
      "[...document.querySelectorAll('#routers .state')].filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.innerText)",
    ),
    [],
  );
});

test.serial('The headline shows what prevents a failover', async (t) => {
  const peer = { address: '192.0.2.2', isHeard: true, version: '0.0.0', notReady: '', lowered: [] };
  const said: readonly (readonly [Partial<PageSummary>, string])[] = [
    [{ role: 'master', peer }, '● All is well'],
    [{ role: 'fault', peer }, '✕ VRRP has a fault: this host cannot hold the VIPs'],
    [{ role: 'unknown', peer }, '! Served, but the state of VRRP is unknown'],
    [
      { role: 'backup', peer, lowered: ['listeners'] },
      '! Served, but this host has a lower priority: listeners',
    ],
    [{ role: 'master', peer: { ...peer, isHeard: false } }, '! Served, but the peer sends no reports'],
    [
      { role: 'master', peer: { ...peer, notReady: 'It has other objects' } },
      '! Served, but the peer cannot take over: It has other objects',
    ],
  ];
  const browser = await newPage(t);
  for (const [more, words] of said) {
    await browser.go(`${await served(t, { ...view, summary: { ...summary, ...more } })}/`);
    await browser.until(`document.querySelector('#headline').innerText === ${JSON.stringify(words)}`);
  }
  t.deepEqual(browser.complaints, []);
});

test.serial('The page is readable without colour and by a screen reader', async (t) => {
  const url = await served(t, {
    ...everyTextIs('web'),
    detail: { ...detail, key: 'web', reasons: ['None'] },
  });
  const browser = await newPage(t);
  await browser.go(`${url}/#open=web`);
  await browser.until("document.querySelectorAll('#detail tbody tr').length === 1");
  const { nodes } = (await browser.send('Accessibility.getFullAXTree')) as {
    nodes: { ignored: boolean; role?: { value: string }; name?: { value: string } }[];
  };
  const roles = new Set(nodes.filter(({ ignored }) => !ignored).map(({ role }) => role?.value));
  for (const role of [
    'banner',
    'main',
    'contentinfo',
    'search',
    'status',
    'list',
    'table',
    'columnheader',
    'row',
    'cell',
  ])
    t.true(roles.has(role), role);
  const nameless = nodes.filter(
    ({ ignored, role, name }) =>
      !ignored &&
      [
        'button',
        'link',
        'searchbox',
        'checkbox',
        'combobox',
        'columnheader',
        'table',
        'region',
        'heading',
      ].includes(role?.value ?? '') &&
      !name?.value,
  );
  t.deepEqual(nameless, []);
  // Every state has a sign and a word.
  t.true(
    await browser.value(
      "[...document.querySelectorAll('.state')].every((e) => /^[●◐✕○!…] \\w/.test(e.textContent))",
    ),
  );
});

test.serial(
  'Every text has a contrast of 4.5, and every line of 3, in light and dark and in all states',
  async (t) => {
    const verdicts = ['served', 'served in part', 'no ready member', 'members down', 'not served'] as const;
    const states = ['ONLINE', 'NO_MONITOR', 'DRAINING', 'OFFLINE', 'ERROR', 'DEGRADED'] as const;
    const [row] = view.list.rows;
    const [listener] = detail.listeners;
    const [member] = listener?.members ?? [];
    if (row === undefined || listener === undefined || member === undefined)
      throw new Error('There is no row');
    const since = '2026-01-01T00:00:00.000Z';
    const instances = ['master', 'backup', 'fault', ''].map((state) => ({
      ...{ name: `vrrp-${state}`, state, since, priority: 1, anchors: ['192.0.2.3'], vips: 1 },
      peerState: state,
    }));
    const colourful = (more: Partial<PageSummary>): PageView => ({
      ...view,
      summary: {
        ...everyTextIs('web').summary,
        ...{
          fault: '',
          role: 'alone',
          lowered: [],
          peer: undefined,
          problemCount: 0,
          bgp: bgpWith(''),
          cluster: { isSynced: true, fault: '', lastAnswer: '', isWriter: false, writer: 'lb1' },
          dashboard: 'https://g.example.org/',
        },
        instances,
        kernel: { loadBalancers: 1, fault: 'none', sync: 'none' },
        ...more,
      },
      list: {
        rows: verdicts.flatMap((verdict) => [
          { ...row, key: verdict, verdict },
          { ...row, key: `${verdict}!`, verdict, problems: 1 },
        ]),
        ...{ found: 60, page: 1, pages: 2 },
      },
      detail: {
        ...detail,
        ...{ key: 'served', reasons: ['None'], moreMembers: 1, dashboard: 'https://g.example.org/' },
        listeners: [
          { ...listener, members: states.map((state) => ({ ...member, name: state, state, why: 'why' })) },
        ],
      },
    });
    const browser = await newPage(t);
    for (const [tone, more] of [
      ['good', {}],
      ['fair', { counts: { ...summary.counts, 'not served': 1 } }],
      ['poor', { fault: 'None' }],
    ] as readonly (readonly [string, Partial<PageSummary>])[]) {
      await browser.go('about:blank');
      await browser.go(`${await served(t, colourful(more))}/#open=served`);
      await browser.until(`document.querySelectorAll('#detail tbody tr').length === ${states.length}`);
      await browser.until(`document.querySelector('#banner').dataset.tone === '${tone}'`);
      await browser.value("document.querySelectorAll('details').forEach((e) => { e.open = true })");
      // The row under the pointer.
      const { x, y } = await browser.value<{ x: number; y: number }>(
        "(() => { const row = document.querySelectorAll('.row')[1]; row.scrollIntoView(); const { x, y } = row.getBoundingClientRect(); return { x, y } })()",
      );
      await browser.send('Input.dispatchMouseEvent', { type: 'mouseMoved', x: x + 9, y: y + 9 });
      for (const scheme of ['light', 'dark'] as const) {
        await browser.prefer(scheme);
        await browser.value(
          "delete document.body.dataset.stale; document.querySelector('#live').dataset.state = 'live'",
        );
        t.deepEqual(await browser.value(LOW_CONTRAST), [], `${scheme} ${tone}`);
        await browser.value(
          "document.body.dataset.stale = ''; document.querySelector('#live').dataset.state = 'lost'",
        );
        t.deepEqual(await browser.value(LOW_CONTRAST), [], `${scheme} ${tone}, connection lost`);
      }
    }
  },
);

test.serial('A page of another origin can read nothing', async (t) => {
  const url = await served(t, view);
  const browser = await newPage(t);
  const other = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.end('HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n<title>other</title>');
  });
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  t.teardown(() => other.close());
  const { port } = other.address() as { port: number };
  await browser.go(`http://127.0.0.1:${port}/`);
  await browser.until("document.title === 'other'");
  const reach = (init: string): Promise<string> =>
    browser.value(`fetch('${url}/', ${init}).then((answer) => answer.type, () => 'refused')`);
  t.is(await reach('{}'), 'refused');
  t.is(await reach("{ mode: 'no-cors' }"), 'refused');
  const state = await browser.value(
    `new Promise((resolve) => { const source = new EventSource('${url}/events'); source.onopen = () => resolve('open'); source.onerror = () => resolve('refused'); })`,
  );
  t.is(state, 'refused');
});

/**
 * Texts of less than 4.5 to 1 against what is behind them (https://www.w3.org/TR/WCAG22/#contrast-minimum), borders of
 * fields, and lines of charts, of less than 3 (https://www.w3.org/TR/WCAG22/#non-text-contrast), and what is translucent.
 */
const LOW_CONTRAST = `(() => {
  const rgb = (text) => { const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number); return { r, g, b, a }; };
  const over = (top, below) => ({ r: top.r * top.a + below.r * (1 - top.a), g: top.g * top.a + below.g * (1 - top.a), b: top.b * top.a + below.b * (1 - top.a), a: 1 });
  const behind = (e) => e === null ? { r: 255, g: 255, b: 255, a: 1 } : over(rgb(getComputedStyle(e).backgroundColor), behind(e.parentElement));
  const light = ({ r, g, b }) => { const [x, y, z] = [r, g, b].map((c) => c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4); return 0.2126 * x + 0.7152 * y + 0.0722 * z; };
  const ratioOf = (colour, ground) => { const [a, b] = [light(ground), light(over(rgb(colour), ground))]; return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05); };
  const low = (e, what, colour, ground, least) => { const ratio = ratioOf(colour, ground); return ratio < least ? [e.className + ' ' + what + ' ' + ratio] : []; };
  const all = [...document.querySelectorAll('body, body *')].filter((e) => e.checkVisibility());
  const texts = all.filter((e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()));
  const fields = all.filter((e) => e.matches('input[type=search], select, .pages button'));
  return [
    ...all.filter((e) => getComputedStyle(e).opacity !== '1').map((e) => e.className + ' is translucent'),
    ...texts.flatMap((e) => low(e, e.textContent.slice(0, 40), getComputedStyle(e).color, behind(e), 4.5)),
    ...fields.flatMap((e) => low(e, 'border', getComputedStyle(e).borderTopColor, behind(e.parentElement), 3)),
    ...fields.flatMap((e) => low(e, 'text', getComputedStyle(e).color, behind(e), 4.5)),
    ...fields.filter((e) => e.placeholder).flatMap((e) => low(e, 'placeholder', getComputedStyle(e, '::placeholder').color, behind(e), 4.5)),
    ...all.filter((e) => e.matches('.line')).flatMap((e) => low(e, 'line', getComputedStyle(e).stroke, behind(e), 3)),
    ...all.filter((e) => getComputedStyle(e, '::before').content !== 'none').flatMap((e) => low(e, '::before', getComputedStyle(e, '::before').color, behind(e), 4.5)),
  ];
})()`;

async function newPage(t: ExecutionContext<unknown>): Promise<Page> {
  const page = await chromium.open();
  t.teardown(() => page.close());
  return page;
}

/** The address of a page that shows this, whatever it asks for. */
async function served(t: ExecutionContext<unknown>, shown: PageView): Promise<string> {
  const { server, address } = await startHealthServer(
    { address: '127.0.0.1', port: 0 },
    {
      metrics: { round: async () => [], own: async () => [] },
      alive: () => '',
      ready: () => '',
      look: async () => shown,
    },
  );
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://${address}`;
}

/** A host with one load balancer of two members, its agent, and the page in a browser. */
async function opened(
  t: ExecutionContext<unknown>,
  annotations: Readonly<Record<string, string>> = {},
): Promise<{ readonly host: TestHost; readonly agent: RunningAgent; readonly browser: Page }> {
  const host = await TestHost.create(t);
  await startMembers(t, host, 2);
  await host.serve({ members: [host.address(11), host.address(12)], annotations });
  const [agent, browser] = await Promise.all([host.start(), newPage(t)]);
  await browser.go(`${agent.url}/`);
  return { host, agent, browser };
}

/** A view in which whatever may be any text is this one. */
function everyTextIs(text: string): PageView {
  const [row] = view.list.rows;
  const [listener] = detail.listeners;
  if (row === undefined || listener === undefined) throw new Error('There is no row');
  return {
    ...view,
    summary: {
      ...summary,
      host: text,
      version: text,
      fault: text,
      bgp: bgpWith(text),
      role: 'master',
      instances: [
        { name: text, state: text, since: '', priority: 1, anchors: [text], vips: 1, peerState: text },
      ],
      peer: { address: text, isHeard: true, version: text, notReady: text, lowered: [text] },
      lowered: [text],
      haproxy: { version: text, serving: true, reloadPending: [text] },
      cluster: { isSynced: true, fault: text, lastAnswer: '', isWriter: false, writer: text },
      kernel: { loadBalancers: 1, fault: text, sync: text },
      disk: { folder: text, writtenAt: '', faults: [{ file: text, why: text }] },
      dashboard: `https://example.org/?${encodeURIComponent(text)}`,
      pools: [{ name: text, family: 'v4', free: text, used: text }],
      broken: [{ key: text, verdict: 'not served', why: text }],
      problems: [
        {
          ...{ reason: text, count: 7, isGrave: true, covered: 1 },
          shown: [{ key: text, object: text, message: text, times: 1 }],
        },
      ],
      problemCount: 2,
    },
    namespaces: [text],
    list: { ...view.list, rows: [{ ...row, key: text, vips: [text, text], ports: [text] }] },
    detail: {
      ...detail,
      key: text,
      reasons: [text],
      vips: [text],
      dashboard: `https://example.org/?${encodeURIComponent(text)}`,
      moreMembers: 1,
      listeners: [
        {
          ...listener,
          name: text,
          protocol: text,
          addresses: [text],
          hosts: [{ host: text, routes: [text], moreRoutes: 1 }],
          certificates: [{ name: text, expires: '2026-01-01T00:00:00.000Z' }],
          members: listener.members.map((each) => ({
            ...each,
            name: text,
            target: text,
            state: 'ERROR',
            why: text,
          })),
        },
      ],
    },
  };
}

function bgpWith(text: string): PageSummary['bgp'] {
  const session = { address: text, asn: 65_000, since: text, why: text, routes: 1, bfd: text };
  const host = { address: text, fault: text, bfd: text, version: text, lowered: [text], hasSame: false };
  return {
    ...{ asn: 65_001, vips: { first: 0, last: 1, withheld: 1 }, unreached: 1 },
    sessions: [false, true].map((isUp, at) => ({ ...session, peer: `${at}${text}`, isUp })),
    hosts: [false, true].map((isSelf, at) => ({ ...host, name: `${at}${text}`, isSelf })),
  };
}
