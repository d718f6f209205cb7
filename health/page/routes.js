// The inside of a listener with routes or certificates: its hosts with their routes, and when its certificates expire.

/** @import { PageCertificate, PageListener } from '../page-model.ts' */

import { element, keyed, setText } from './elements.js';
import { countOf, day } from './words.js';

const DAY_MS = 86_400_000;
/** A certificate that expires within this time is told apart. */
const SOON_DAYS = 14;

/**
 * @param {HTMLElement} home
 * @param {PageListener} listener
 */
export function showInside(home, { hosts, moreHosts, certificates, moreCertificates }) {
  const lines = [
    ...hosts.map(({ host, routes, moreRoutes }, at) => ({
      key: `host ${at} ${host}`,
      term: host,
      tone: '',
      text: `${routes.join(', ')}${moreRoutes > 0 ? ` and ${countOf(moreRoutes, 'more route')}` : ''}`,
    })),
    ...(moreHosts > 0 ? [{ key: 'hosts', term: countOf(moreHosts, 'more host'), tone: '', text: '' }] : []),
    ...certificates.map(certificateLine),
    ...(moreCertificates > 0
      ? [{ key: 'certificates', term: countOf(moreCertificates, 'more certificate'), tone: '', text: '' }]
      : []),
  ];
  home.hidden = lines.length === 0;
  keyed(
    home,
    lines,
    ({ key }) => key,
    () =>
      element(
        'p',
        {},
        element('b', { class: 'inside-name' }),
        ' ',
        element('span', { class: 'inside-text' }),
      ),
    (line, { term, tone, text }) => {
      line.dataset.tone = tone;
      const [name, about] = line.children;
      if (name) setText(name, term);
      if (about) setText(about, text);
    },
  );
}

/** @param {PageCertificate} certificate */
function certificateLine({ name, expires }) {
  const days = Math.floor((Date.parse(expires) - Date.now()) / DAY_MS);
  const when = days < 0 ? 'expired on' : 'expires on';
  const left = days < 0 ? '' : `, in ${countOf(days, 'day')}`;
  return {
    key: `certificate ${name}`,
    term: `certificate ${name}`,
    tone: days < 0 ? 'poor' : days < SOON_DAYS ? 'fair' : '',
    text: `${when} ${day(expires)}${left}`,
  };
}
