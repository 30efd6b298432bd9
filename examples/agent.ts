/** An agent: each answer of the model and each call of a tool is a step, so a crash repeats none of them. Run it: node examples/agent.ts */
import { connect, defineTask } from 'holdfast'

type Message = { readonly role: 'user' | 'model' | 'tool'; readonly text: string }
type Answer = { readonly tool: string; readonly argument: string } | { readonly text: string }

/** In place of a language model: looks up two cities, then answers. Each call costs money. */
let modelCalls = 0
const askModel = (messages: readonly Message[]): Answer => {
  modelCalls++
  const found = messages.filter(({ role }) => role === 'tool').map(({ text }) => text)
  if (found.length < 2) return { tool: 'temperature', argument: found.length === 0 ? 'Oslo' : 'Rome' }
  return { text: `Oslo ${found[0]}, Rome ${found[1]}` }
}
const tools: Readonly<Record<string, (argument: string) => string>> = {
  temperature: (city) => (city === 'Oslo' ? '4°' : '18°'),
}

const agent = defineTask<{ question: string }, { answer: string }>('agent', {
  retryPolicy: { base: '1ms', jitter: 'none' },
})

await using holdfast = await connect(process.argv[2] ?? 'memory:')

const worker = holdfast.worker().handle(agent, async ({ question }, ctx) => {
  const messages: Message[] = [{ role: 'user', text: question }]
  for (let turn = 1; turn <= 10; turn++) {
    const answer = await ctx.step(`model ${turn}`, () => askModel(messages))
    if ('text' in answer) return { answer: answer.text }
    const found = await ctx.step(`${answer.tool} ${turn}`, () => tools[answer.tool]!(answer.argument))
    messages.push({ role: 'model', text: JSON.stringify(answer) }, { role: 'tool', text: found })
    // The first two runs fail in the middle; the next ones continue where they were.
    if (ctx.attempt === turn && turn < 3) throw new Error('the machine was restarted')
  }
  throw new Error('the agent did not come to an end')
})

worker.start()
const task = await holdfast.submit(agent, { question: 'How warm is it in Oslo and in Rome?' })
const { answer } = await holdfast.wait(task)
await worker.stop()
const { attempts } = await holdfast.get(task.id)
console.log(`${answer} (${attempts} runs, ${modelCalls} calls of the model)`)
