// The words of an amphora's status page, which its own files have as JavaScript.

import test from 'ava';
import type {
  AmphoraPageLoadBalancer,
  AmphoraPageRow,
  AmphoraPageSummary,
} from '../../health/amphora-page-model.ts';
import { amphoraView } from '../support/octavia/page-view.ts';

interface Fact {
  readonly term: string;
  readonly tone: string;
  readonly lines: readonly string[];
}

interface Words {
  readonly headline: (summary: AmphoraPageSummary) => { readonly tone: string; readonly text: string };
  readonly subline: (summary: AmphoraPageSummary) => string;
  readonly amphoraFacts: (summary: AmphoraPageSummary) => readonly Fact[];
  readonly loadBalancerFacts: (loadBalancer: AmphoraPageLoadBalancer) => readonly Fact[];
  readonly listenerLine: (row: AmphoraPageRow) => string;
  readonly statusWords: (status: string) => { readonly tone: string; readonly text: string };
}

const { headline, subline, amphoraFacts, loadBalancerFacts, listenerLine, statusWords }: Words = await import(
  new URL('../../health/page/amphora-words.js', import.meta.url).href
);

const { summary, list } = amphoraView();
const [loadBalancer] = summary.loadBalancers as [AmphoraPageLoadBalancer];
const [row] = list.rows as [AmphoraPageRow];

test('The headline of an amphora names the worst that an operator should know', (t) => {
  const of = (change: Partial<AmphoraPageSummary>) => headline({ ...summary, ...change });
  t.deepEqual(of({}), { tone: 'good', text: '● All is well' });
  t.is(of({ fault: 'HAProxy of lb does not run' }).text, '✕ HAProxy of lb does not run');
  t.is(of({ listeners: { all: 3, unserved: 2 } }).text, '✕ 2 listeners are not served');
  t.is(
    of({ loadBalancers: [{ ...loadBalancer, isBehind: true }] }).text,
    '! Served, but the last uploaded text does not run',
  );
  t.is(of({ members: { ready: 1, down: 1, all: 2 } }).text, '! 1 member fails its check');
  t.is(
    of({ heartbeat: { ...summary.heartbeat, lastAt: '' } }).text,
    '! Served, but no heartbeat was sent yet',
  );
  t.is(
    of({ loadBalancers: [], listeners: { all: 0, unserved: 0 } }).text,
    '○ The controller has pushed nothing yet',
  );
  t.is(subline(summary), '1 of 1 listener served; members ready: 1 of 1.');
});

test('The facts of an amphora have the last heartbeat, and why there is none', (t) => {
  const of = (change: object) =>
    amphoraFacts({ ...summary, heartbeat: { ...summary.heartbeat, ...change } })[1];
  t.regex(
    of({})?.lines.join('\n') ?? '',
    /^Last one 1 Jan 2026.* to web\n7 sent since .*\ncontrollers: web$/,
  );
  t.like(of({ fault: 'no route' }), { tone: 'poor', lines: { 1: 'no route' } });
  t.like(of({ lastAt: '', controllers: [] }), {
    tone: 'fair',
    lines: { 0: 'None sent yet', 2: 'no controller' },
  });
});

test('The facts of a load balancer say which text runs since when, whether it is the last one, and the last reload', (t) => {
  const [, haproxy, upload, reload] = loadBalancerFacts({ ...loadBalancer, lastReload: 'bind differs' });
  t.regex(haproxy?.lines.join('\n') ?? '', /^Runs this text since 1 Jan 2026.*\nMD5 web$/);
  t.deepEqual(upload, { term: 'Last upload', tone: 'good', lines: ['Runs'] });
  t.deepEqual(reload, { term: 'Last reload', tone: 'idle', lines: ['bind differs'] });
  const behind = loadBalancerFacts({ ...loadBalancer, isBehind: true, fault: 'no such file' });
  t.deepEqual(behind[2], { term: 'Last upload', tone: 'poor', lines: ['Does not run', 'no such file'] });
});

test('A status has a sign besides its colour, and a listener says who serves it', (t) => {
  t.deepEqual(
    ['OPEN', 'UP 1/2', 'DOWN', 'DRAIN', 'no check', 'MAINT', ''].map((each) => statusWords(each).text),
    [...['● OPEN', '● UP 1/2', '✕ DOWN', '◐ DRAIN', '○ no check', '○ MAINT', '✕ not served']],
  );
  t.is(
    listenerLine({ ...row, id: 'l', loadBalancer: 'lb' }),
    'l, of load balancer lb, by HAProxy, members ready: 1 of 1, 3 connections',
  );
  t.is(
    listenerLine({ ...row, id: 'l', loadBalancer: '', engine: 'kernel' }),
    'l, by the kernel, members ready: 1 of 1',
  );
});
