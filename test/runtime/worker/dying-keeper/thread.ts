/** A keeper's thread that dies in its first round of renewals. Its successor finds the mark that it left. */
import { existsSync, writeFileSync } from 'node:fs'
import { keeperTold, keepOnThread } from '../../../../src/store/threads/threaded-keeper.ts'

const { place: mark } = keeperTold<string>()

keepOnThread({
  renew: async (renewals) => {
    if (!existsSync(mark)) {
      writeFileSync(mark, 'died')
      process.exit(1)
    }
    return renewals.map(() => 'held')
  },
  prepare: () => {},
  close: () => {},
})
