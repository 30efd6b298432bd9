/** How much a test of chance does: enough that its planted bugs are noticed; with HOLDFAST_VOLUME=full as much as there is time for at night. */
export const volume = (few: number, many: number): number => (process.env['HOLDFAST_VOLUME'] === 'full' ? many : few)
