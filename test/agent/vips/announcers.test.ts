import test from 'ava';
import type { Withheld } from '../../../agent/vips/announcer.ts';
import { Announcers, type AnnouncersOfHost } from '../../../agent/vips/announcers.ts';

type Fake = NonNullable<AnnouncersOfHost['vrrp']>;

/** An announcer that notes what it is asked. */
function fake(withheld: Withheld, asked: string[], fault = ''): Fake {
  return {
    ownFiles: [{ path: '/f', kind: 'file', isIntact: async () => true, restore: async () => undefined }],
    start: async () => void asked.push('start'),
    close: async () => void asked.push('close'),
    stop: async () => void asked.push('stop'),
    follow: (keys) => asked.push(`follow ${[...keys].join()}`),
    standing: (reasons) => asked.push(`standing ${reasons.join()}`),
    withheld: () => withheld,
    problemsOf: ({ key }) => [{ object: key, reason: 'AddressUnavailable', message: 'x' }],
    families: () => [{ name: 'n', type: 'gauge', help: 'h', parts: [] }],
    status: () => ({
      ...{
        version: '',
        pid: 0,
        instances: [],
        auth: { level: 'off', key: '', why: '' },
        vips: 0,
        lowered: [],
        rivals: [],
      },
      ...rest,
      fault,
    }),
  };
}
const rest = { refused: [], unready: [] };

/** As with a second kind of announcer. */
const several = (...all: readonly Fake[]) =>
  new Announcers(
    Object.fromEntries(all.map((each, at) => [at === 0 ? 'vrrp' : `other${at}`, each])) as never,
  );

test('Announcers gives each announcer every key, also of keys that can be read once', async (t) => {
  const asked: string[] = [];
  const announcers = several(fake('', asked), fake('', asked));
  announcers.follow(['a', 'b'].values(), new Map());
  announcers.standing(['haproxy']);
  await announcers.start();
  await announcers.close();
  await announcers.stop();
  t.deepEqual(
    asked,
    ['follow a,b', 'standing haproxy', 'start', 'close', 'stop'].flatMap((each) => [each, each]),
  );
  t.is(announcers.ownFiles.length, 2);
  t.is(announcers.families().length, 2);
  t.is(announcers.problemsOf({ key: 'k', vips: [], listeners: [] }).length, 2);
});

test('Announcers withholds an address only if each of them does, with the reason of one that has it', (t) => {
  const of = (...reasons: readonly Withheld[]) =>
    several(...reasons.map((reason) => fake(reason, []))).withheld('192.0.2.1');
  t.is(of('standby', ''), '');
  t.is(of('unwanted', 'standby'), 'standby');
  t.is(of('unwanted', 'unwanted'), 'unwanted');
});

test('Announcers of a host without any announces nothing and has no fault', (t) => {
  const announcers = new Announcers({ vrrp: undefined, bgp: undefined });
  t.true(announcers.isEmpty);
  t.is(announcers.withheld('192.0.2.1'), 'unwanted');
  t.is(announcers.fault, '');
  t.deepEqual(announcers.sections(), { vrrp: undefined, bgp: undefined });
});

test('Announcers has the first fault of its announcers', (t) => {
  t.is(several(fake('', []), fake('', [], 'broken')).fault, 'broken');
});
