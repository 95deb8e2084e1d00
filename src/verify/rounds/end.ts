import { type Round, untested } from './round.ts'

/** C8, and what all responses of the run say of C9, C16 and C19. */
export const end: Round = {
  promises: ['C8', 'C9', 'C16', 'C19'],
  cost: () => ({ requests: 0, seconds: 0 }),
  run: async ({ records, clockNote }) => [
    ...untested(['C8'], 'no run checks this, because the password of the device would have to change'),
    ...records.findings(),
    ...(clockNote === undefined ? [] : [{ promise: 'C16', kind: 'kept', note: clockNote } as const]),
  ],
}
