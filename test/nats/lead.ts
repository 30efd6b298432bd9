/** Which server of a cluster leads a stream, and what it takes to kill it. */
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { until } from '../crash/processes.ts'
import type { NatsCluster, NatsServer } from '../servers/nats.ts'

interface Lead {
  readonly leader: string | undefined
  /** The others have all that it has. */
  readonly isWhole: boolean
}

/** The server that leads the bucket's stream, if one answers. */
const leadOf = async (url: string, stream: string): Promise<Lead> => {
  try {
    const nc = await connect({ servers: url.replace('nats://', '').split(',') })
    try {
      const { cluster } = await (await jetstreamManager(nc)).streams.info(stream)
      const others = cluster?.replicas ?? []
      const isWhole = others.length === 2 && others.every(({ current, offline }) => current && !offline)
      return { leader: cluster?.leader, isWhole }
    } finally {
      await nc.close()
    }
  } catch {
    return { leader: undefined, isWhole: false }
  }
}

/** Returns the killed server when another one leads. */
export const killLeader = async (cluster: NatsCluster, stream: string): Promise<NatsServer> => {
  let leader: string | undefined
  // The one of the round before must be back, or two of three would be away.
  await until('there is a leader of three', async () => {
    const lead = await leadOf(cluster.url, stream)
    leader = lead.leader
    return leader !== undefined && lead.isWhole
  })
  const server = cluster.servers.find(({ url }) => `n${new URL(url).port}` === leader)!
  await server.kill()
  await until('another one leads', async () => {
    const lead = await leadOf(cluster.url, stream)
    return lead.leader !== undefined && lead.leader !== leader
  })
  return server
}
