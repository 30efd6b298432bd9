/** Measures how long each page takes, repeatedly and sequentially. */
import { medianOf } from '../median.ts'
import { createdAtOf, idOf } from './mix.ts'
import { type PageOf, pagesOf } from './pages.ts'
import { ask } from './server.ts'

/** The 95th percentile in milliseconds. */
const MOST = 300

/** Uses ids of the store, which was filled at `filledAt`. */
export const pagesAt = async (url: string, total: number, filledAt: number): Promise<PageOf[]> => {
  const middle = Math.floor(total / 2)
  return pagesOf({
    completed: await idWith(url, 'completed'),
    ready: await idWith(url, 'ready'),
    dead: await idWith(url, 'dead'),
    middle: idOf(middle, createdAtOf(middle, total, filledAt)),
  })
}

const idWith = async (url: string, status: string): Promise<string> => {
  const { tasks } = JSON.parse(await ask(url, `/tasks?limit=1&status=${status}`)) as { tasks: { id: string }[] }
  return tasks[0]!.id
}

/** Also reports processor time of the server and its store, which says more than elapsed time on a busy machine. */
export const measurePages = async (
  url: string,
  pages: readonly PageOf[],
  times: number,
  cpuSeconds: () => Promise<number>,
): Promise<void> => {
  let missed = 0
  for (const { name, asks } of pages) {
    const took: number[] = []
    const before = await cpuSeconds()
    for (let n = 0; n < times; n++) {
      const began = performance.now()
      await Promise.all(asks.map((one) => ask(url, one)))
      took.push(performance.now() - began)
    }
    const cpu = (((await cpuSeconds()) - before) / times) * 1_000
    took.sort((a, b) => a - b)
    const p95 = took[Math.ceil(took.length * 0.95) - 1]!
    if (p95 > MOST) missed++
    const [p50, most, used] = [medianOf(took), p95, cpu].map((ms) => `${ms.toFixed(1).padStart(7)} ms`)
    console.log(`  ${name.padEnd(42)} p50 ${p50}  p95 ${most}  CPU ${used}${p95 > MOST ? '  MISSED' : ''}`)
  }
  console.log(`\n  ${missed} of ${pages.length} pages take longer than ${MOST} ms (95th percentile of ${times})`)
}
