/** Submits one task at a time and measures how long it takes until its handler is called: from the call, and from its reply. */
import { open, planOf, say } from './child.ts'

export interface StarterPlan {
  readonly file: string
  readonly submits: number
}

const { file, submits } = planOf<StarterPlan>()
const client = await open(file)
let started = (): void => {}
client
  .worker()
  .handle('work', () => started())
  .start()

const once = async (): Promise<[fromCall: number, fromReply: number]> => {
  const called = new Promise<number>((done) => {
    started = () => done(performance.now())
  })
  const begun = performance.now()
  const { id } = await client.submit('work', null)
  const acknowledged = performance.now()
  const at = await called
  await client.waitForEnd(id)
  return [at - begun, at - acknowledged]
}

for (let i = 0; i < 20; i++) await once()
const times: [number, number][] = []
while (times.length < submits) times.push(await once())
say('measured', { times })
await client.close()
