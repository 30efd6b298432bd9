/** Claims, renews and completes a task by hand, with a fence for your own writes. Run it: node examples/by-hand.ts */
import { connect } from 'holdfast'

await using holdfast = await connect(process.argv[2] ?? 'sqlite:./holdfast.db')
await holdfast.submit('resize', { image: 'a.png' }, { queue: 'images' })

const lease = await holdfast.claimNext({ queue: 'images', workerId: 'my-own-loop', leaseTtl: '10s' })
if (lease === null) throw new Error('nothing to do')

const { cancelRequested } = await lease.renew({ progress: { percent: 50 } })
if (cancelRequested) await lease.release()
else {
  // Guard your own storage with the fence: `update images set … where id = ? and fence <= ?`
  const done = await lease.complete({ width: 640, fence: lease.fence })
  console.log(`${done.type} is ${done.status}`, done.output)
}
