/** The facts about a NATS server and its streams that `doctor` reports. */
import type { Fact } from '../../core/observe/diagnosis.ts'
import type { Connected } from './connection/connection.ts'
import { rightsFact } from './rights.ts'
import { durabilityOf, faultsOf } from './streams.ts'
import type { Subjects } from './subjects.ts'

export const examine = async (
  connected: Connected,
  subjects: Subjects,
  monitor: string | undefined,
): Promise<Fact[]> => {
  const { nc, jsm } = connected
  const streams = await Promise.all([subjects.kv, subjects.ready, subjects.later].map((name) => jsm.streams.info(name)))
  const replicas = Math.min(...streams.map(({ config }) => config.num_replicas))
  const { isStrong, why } = await durabilityOf(replicas, monitor)
  return [
    await rightsFact(connected, subjects),
    { check: 'version', product: 'nats-server', version: nc.info?.version ?? '', least: '2.9', isEnough: true },
    {
      check: 'durability',
      setting: 'durability of JetStream',
      value: isStrong ? 'strong' : `weak: ${why}`,
      wanted: 'strong',
      how: 'set sync_interval: always in the jetstream block of the server, or use three replicas',
    },
    {
      check: 'integrity',
      by: 'the settings of its streams',
      faults: streams.flatMap(({ config }) => faultsOf(config).map((fault) => `${config.name} ${fault}`)),
      how: 'Correct the settings of the stream (nats stream edit NAME), or move the tasks to a new bucket with `holdfast move`.',
    },
  ]
}
