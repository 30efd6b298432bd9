/** The settings of a Ceph of one monitor, one disk and one S3 gateway, all in one folder. */
import { join } from 'node:path'
import { librariesIn } from './debian-packages.ts'

export interface CephPlace {
  readonly folder: string
  /** Where its programs were unpacked. */
  readonly programs: string
  /** Id of the cluster. */
  readonly id: string
  readonly monitorPort: number
  readonly gatewayPort: number
}

/** Even what is not written is gathered for the case of a crash, which costs a tenth of the time. Readiness is read from the log of `osd`. */
const QUIET = [
  'ms',
  'auth',
  'bluestore',
  'bluefs',
  'bdev',
  'rocksdb',
  'rgw',
  'objecter',
  'monc',
  'mon',
  'paxos',
  'filestore',
  'civetweb',
]

export const cephSettings = ({ folder, programs, id, monitorPort, gatewayPort }: CephPlace): string => {
  const libraries = librariesIn(programs)
  return `[global]
fsid = ${id}
mon host = [v2:127.0.0.1:${monitorPort}]
ms bind msgr1 = false
public addr = 127.0.0.1
cluster addr = 127.0.0.1
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
auth allow insecure global id reclaim = false
keyring = ${join(folder, 'keyring')}
run dir = ${folder}
admin socket =
log file = ${join(folder, '$name.log')}
pid file =
crash dir = ${folder}
osd class dir = ${join(libraries, 'rados-classes')}
erasure code dir = ${join(libraries, 'ceph/erasure-code')}
plugin dir = ${join(libraries, 'ceph')}
# One copy of everything, on few placement groups.
osd pool default size = 1
osd pool default min size = 1
mon allow pool size one = true
osd crush chooseleaf type = 0
${QUIET.map((part) => `debug ${part} = 0/0`).join('\n')}
debug osd = 1/1
osd pool default pg num = 2
osd pool default pgp num = 2
osd pool default pg autoscale mode = off
mon max pg per osd = 1000
[mon]
mon data = ${join(folder, 'mon.a')}
mon cluster log file = ${join(folder, 'cluster.log')}
mon initial members = a
paxos propose interval = 0.05
# A test machine's disk may be nearly full.
mon data avail crit = 1
mon data avail warn = 2
[osd]
osd data = ${join(folder, 'osd.0')}
osd objectstore = bluestore
osd memory target = 1073741824
bluestore block create = true
bluestore block size = 10737418240
osd class load list = *
osd class default list = *
osd mclock skip benchmark = true
[client.rgw]
# Without tcp_nodelay every GET and LIST takes 44 ms.
rgw frontends = beast endpoint=127.0.0.1:${gatewayPort} tcp_nodelay=1
rgw thread pool size = 64
rgw dynamic resharding = false
rgw override bucket index max shards = 1
rgw run sync thread = false
rgw enable apis = s3, admin
# A lifecycle rule's day passes only by asking for it.
rgw enable lc threads = false
`
}
