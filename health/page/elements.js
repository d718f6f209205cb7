// Elements of the page. Texts are set as text only, so the name of an object never becomes markup.

/**
 * @param {string} name
 * @param {Readonly<Record<string, string | undefined>>} attributes Without those that are undefined.
 * @param {readonly (Node | string)[]} children
 * @returns {HTMLElement}
 */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes))
    if (value !== undefined) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/**
 * A link to another site, which is opened beside the page.
 * @param {string} url
 * @param {string} text
 */
export function link(url, text) {
  return element('a', { href: url, target: '_blank', rel: 'noopener noreferrer' }, text);
}

/**
 * A row that begins with a name and a state, each with something small beside it, a word and a number.
 * @param {readonly HTMLElement[]} more Further cells.
 */
export function stateRow(...more) {
  return element(
    'tr',
    {},
    element('td', {}, element('span'), element('small')),
    element('td', {}, element('span'), element('small')),
    element('td', {}, element('span')),
    element('td', { class: 'number' }),
    ...more,
  );
}

/**
 * An element of index.html.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`There is no element "${id}"`);
  return found;
}

/**
 * Sets a text only if it differs, so that a screen reader and a selection are not disturbed.
 * @param {Node} node
 * @param {string} text
 */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * Makes the children of `parent` one per item, in order. The child of an item stays the same element, with its focus and
 * content, as long as the item exists. Children without a key stay before them.
 * @template Item
 * @param {HTMLElement} parent
 * @param {readonly Item[]} items
 * @param {(item: Item) => string} keyOf Unique.
 * @param {(item: Item) => HTMLElement} create
 * @param {(child: HTMLElement, item: Item) => void} update
 */
export function keyed(parent, items, keyOf, create, update) {
  /** @type {Map<string, HTMLElement>} */
  const known = new Map();
  for (const child of parent.children)
    if (child instanceof HTMLElement && child.dataset.key !== undefined) known.set(child.dataset.key, child);
  /** @type {Element | null} */
  let next = known.values().next().value ?? null;
  for (const item of items) {
    const key = keyOf(item);
    const child = known.get(key) ?? create(item);
    child.dataset.key = key;
    known.delete(key);
    update(child, item);
    if (child === next) next = child.nextElementSibling;
    else parent.insertBefore(child, next);
  }
  for (const left of known.values()) left.remove();
}
