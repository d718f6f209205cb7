// The namespaces among which the list can be filtered.

import { byId, element, keyed, setText } from './elements.js';

const select = /** @type {HTMLSelectElement} */ (byId('namespace'));

/** @type {readonly string[]} */
let known = [];

/**
 * @param {readonly string[]} names Empty if they are not known yet.
 * @param {string} chosen '' for all. It may have no load balancer now.
 */
export function showNamespaces(names, chosen) {
  if (names.length > 0) known = names;
  const shown = chosen === '' || known.includes(chosen) ? known : [...known, chosen];
  keyed(
    select,
    ['', ...shown],
    (name) => name,
    (name) => element('option', { value: name }),
    (option, name) => setText(option, name || 'All namespaces'),
  );
  select.value = chosen;
}
