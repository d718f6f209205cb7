// The agent serves this file of the package beside the page.

export * from 'uplot';
export { default } from 'uplot';
