/** The whole contract as data: every case of every subject. */

import { boundedReadCases } from './bounded-reads.ts'
import type { Case } from './case.ts'
import { claimCases } from './claim.ts'
import { closeCases } from './close.ts'
import { commitCases } from './commit.ts'
import { countCases } from './count.ts'
import { detachedKeyCases } from './detached-keys.ts'
import { documentCases } from './documents.ts'
import { dueCases } from './due.ts'
import { fidelityCases } from './fidelity.ts'
import { historyCases } from './history.ts'
import { insertCases } from './insert.ts'
import { keyCases } from './keys.ts'
import { leaseCases } from './lease.ts'
import { limitCases } from './limits.ts'
import { moveCases } from './moves.ts'
import { orderCases } from './order.ts'
import { queryCases } from './query.ts'
import { removeCases } from './remove.ts'
import { wakeCases } from './wake.ts'
import { watchCases } from './watch.ts'

/** All conformance cases for a store. */
export const conformanceCases: readonly Case[] = [
  ...insertCases,
  ...keyCases,
  ...claimCases,
  ...orderCases,
  ...dueCases,
  ...commitCases,
  ...moveCases,
  ...leaseCases,
  ...limitCases,
  ...removeCases,
  ...queryCases,
  ...countCases,
  ...boundedReadCases,
  ...documentCases,
  ...detachedKeyCases,
  ...fidelityCases,
  ...historyCases,
  ...wakeCases,
  ...watchCases,
  ...closeCases,
]

export type { Case }
