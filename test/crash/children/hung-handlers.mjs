/**
 * For `holdfast worker`: one handler that returns and one that never does, in the worker itself or isolated. JavaScript, as
 * an application deploys it: every thread would have to load Node's TypeScript support first.
 */
export const good = () => 'done'
export const hung = () => new Promise(() => {})

const isolate = process.env['HUNG_ISOLATE']
const module = import.meta.url

export default isolate === undefined
  ? { good, hung }
  : { good: { module, export: 'good', isolate }, hung: { module, export: 'hung', isolate } }
