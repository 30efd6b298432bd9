/**
 * Tasks may have a group, and claims come with limits. The function that claims has another name, so that processes of an earlier release, whose
 * tasks would be without a group, stop at their next claim.
 */
import { claimCapped } from './5-claim-capped.ts'
import { claimInOrder } from './5-claim-in-order.ts'
import { claimInTurns } from './5-claim-in-turns.ts'
import { indexes } from './5-levels.ts'
import { waitingGroups } from './5-waiting-groups.ts'

export const groups = (schema: string): string => `
  drop function ${schema}.claim(bigint, text, text[], integer, text, text, bigint, text, text[], boolean[], integer[], bigint[]);
  ${[indexes, claimInOrder, claimCapped, claimInTurns, waitingGroups].map((part) => part(schema)).join('\n')}
  `
