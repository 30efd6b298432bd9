/** Viewers in a separate process, each with an open page that behaves like the browser (dashboard/src/resource.ts). Ends on a line of input. */
import { once } from 'node:events'
import type { PageOf } from './pages.ts'
import { ask, listenTo } from './server.ts'

const REST = 1_000
const REST_AFTER = { list: 30, task: 3 }

const [base, given] = process.argv.slice(2) as [string, string]
let isOver = false
let answers = 0
let bytes = 0

/** One request of a page, repeated as a page repeats it. */
const keepAsking = (asked: string, again: PageOf['again'], hear: Set<() => void>): void => {
  const restAfter = asked.startsWith('/tasks/0') ? REST_AFTER.task : REST_AFTER.list
  let notBefore = 0
  let timer: NodeJS.Timeout | null = null
  let isUnderWay = false
  let isWanted = false
  const read = async (): Promise<void> => {
    timer = null
    if (isOver) return
    isUnderWay = true
    isWanted = false
    const began = performance.now()
    await ask(base, asked).catch(() => {})
    answers++
    isUnderWay = false
    notBefore = performance.now() + Math.max(REST, restAfter * (performance.now() - began))
    if (isWanted) soon()
  }
  const soon = (): void => {
    isWanted = true
    if (!isUnderWay && timer === null) timer = setTimeout(read, Math.max(0, notBefore - performance.now())).unref()
  }
  void read()
  if (asked.startsWith('/tasks/count')) setInterval(soon, 10_000).unref()
  else if (again === 'changes') hear.add(soon)
  else if (again !== 'never') setInterval(soon, again).unref()
}

const pages = JSON.parse(given) as PageOf[]
const feeds = pages.map(({ asks, again }) => {
  const hear = new Set<() => void>()
  for (const asked of asks) if (typeof asked === 'string') keepAsking(asked, again, hear)
  return listenTo(base, (chunk) => {
    bytes += chunk.length
    if (chunk.includes('event: changes')) for (const soon of hear) soon()
  })
})
console.log('ready')
await once(process.stdin, 'data')
isOver = true
for (const feed of feeds) feed.close()
console.log(JSON.stringify({ answers, bytes }))
process.exit()
