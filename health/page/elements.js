// Elements of the page. A text is only ever set as text: what objects are called never becomes markup.

/**
 * @param {string} name
 * @param {Readonly<Record<string, string | undefined>>} attributes Those that are undefined are left out.
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
 * Sets a text where it differs, so that a screen reader and a selection are left alone.
 * @param {Node} node
 * @param {string} text
 */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * Brings the children of `parent` to one per item, in order; a child stays what it is as long as its item is there,
 * with its focus and all that is in it.
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
    if (child instanceof HTMLElement) known.set(child.dataset.key ?? '', child);
  /** @type {Element | null} */
  let next = parent.firstElementChild;
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
