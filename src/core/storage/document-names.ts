/** The names of the documents that the runtime keeps in a store. */

/** A queue that was used, so that it is listed even when it is empty. */
export const QUEUE = 'queue/'
/** A queue that is paused. */
export const PAUSE = 'pause/'
/** The limits of a queue, and its paused groups. */
export const FLOW = 'flow/'
/** The next permit of a rate: of a queue, or of one group of it. */
export const RATE = 'rate/'
export const SCHEDULE = 'schedule/'
/** How long ended tasks are kept. */
export const RETENTION = 'retention'
/** Which process sweeps the queues without workers, and until when. */
export const SWEEP = 'sweep'
/** A live worker. */
export const WORKER = 'worker/'
/** A transfer of this store to another one, and from another one into this. */
export const TRANSFER_OUT = 'move/out'
export const TRANSFER_IN = 'move/in'
/** What happened, for charts. */
export const CHART = 'chart/'
