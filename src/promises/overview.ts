import type { Promised } from './promised.ts'

/** What an operator can see at a glance. */
export const OVERVIEW = {
  H148: {
    sentence:
      'Each second of the last 15 minutes is recorded, also while nobody looks. A second in which the process was stopped or the machine slept is missing, and its counts appear as no rate.',
    reason:
      'decision: a page that is opened after an incident shows the incident, and no peak that never was',
  },
  H149: {
    sentence:
      '`postern_refusals_total` counts every refusal by its kind. All kinds are series from the start, and `rate_limited` agrees with `postern_rate_limited_total`.',
    reason: '`rate()` misses the first event of a series that begins with it',
  },
  H150: {
    sentence:
      'The overview says which clients and grants have used up a window, until when, and how often they were refused, and when each grant was last used. The last log lines that are not about requests are kept, whatever `log.level` says.',
    reason:
      'the operator asks who it is while it happens, and no log of the day before has been configured for it',
  },
} as const satisfies Readonly<Record<`H${number}`, Promised>>
