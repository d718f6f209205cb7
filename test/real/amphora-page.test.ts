// The status page of an amphora in a real browser: no text of the controller can harm it.

import ava from 'ava';
import { startHealthServer } from '../../health/server.ts';
import { requires } from '../support/basics/requirements.ts';
import { amphoraView } from '../support/octavia/page-view.ts';
import { Browser } from '../support/report/browser.ts';

const test = requires(ava, { programs: ['chromium'] });

const HOSTILE = `"><img src=x onerror="window.hurt=1"><script>window.hurt=1</script>\u202e{{x}}${'x'.repeat(300)}`;

test('The page of an amphora shows any text as text, fits on a phone, and follows the agent', async (t) => {
  t.timeout(60_000);
  let shown = amphoraView(HOSTILE);
  const { server, address } = await startHealthServer(
    { address: '127.0.0.1', port: 0 },
    {
      metrics: { round: async () => [], own: async () => [] },
      ...{ alive: () => '', ready: () => '', look: async () => shown },
      page: 'amphora.html',
      intervalMs: 100,
    },
  );
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const chromium = await Browser.start();
  t.teardown(() => chromium.close());
  const browser = await chromium.open();
  for (const width of [320, 1280]) {
    await browser.resize(width, 800);
    await browser.go('about:blank');
    await browser.go(`http://${address}/`);
    await browser.until("document.querySelectorAll('#listeners tbody tr').length === 2");
    t.is(await browser.value('document.documentElement.scrollWidth'), width);
  }
  const text = await browser.text();
  for (const word of ['All is well', 'Runs this text since', 'Last reload', 'Last one 1 Jan 2026', HOSTILE])
    t.true(text.includes(word), `${word}\n${text}`);
  t.is(await browser.value('typeof window.hurt'), 'undefined');
  t.is(await browser.value("document.querySelectorAll('img').length"), 1, 'the mark of the page itself');

  await browser.value('window.isTheSame = true');
  const web = amphoraView('web');
  shown = { ...web, summary: { ...web.summary, fault: 'HAProxy of web does not run' } };
  await browser.until("document.querySelector('#headline').innerText === '✕ HAProxy of web does not run'");
  await browser.until("document.querySelectorAll('#listeners > li').length === 1");
  t.false((await browser.text()).includes('<img'));
  t.true(await browser.value('window.isTheSame'));
  t.deepEqual(browser.complaints, []);
});
