/** Roles: names for the sets of rights that most callers need. */
import { RIGHTS, type Right } from '../route.ts'

/** All rights. */
export const EVERYTHING: readonly Right[] = RIGHTS
/** Read access without changes and without payloads. */
export const VIEWER: readonly Right[] = ['read']
/** Sees and changes everything, and claims nothing. */
export const OPERATOR: readonly Right[] = ['read', 'payloads', 'submit', 'signal', 'operate']
/** Claims tasks and ends them, and nothing else. */
export const WORKER: readonly Right[] = ['work']

/** The role of a token. */
export type Role = 'viewer' | 'operator' | 'worker'

/** The rights of each role. */
export const ROLES: Readonly<Record<Role, readonly Right[]>> = { viewer: VIEWER, operator: OPERATOR, worker: WORKER }
