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
  H160: {
    sentence:
      '`postern explain ID` says of each of the last requests what it was taken for, in whose window it counted, which token was found, what the device answered, and where the time went.',
    reason: '"why was my request refused?" has an answer without a debugger or another log level',
  },
  H161: {
    sentence:
      'The last 1000 admitted requests are remembered, and apart from them the last 500 over the limit and the last 500 refused otherwise, in 1 MiB, whatever clients send.',
    reason: 'bounded memory; a flood of refused requests must not wash out the one that is asked for',
  },
  H162: {
    sentence:
      'What is remembered of a request holds no token, password, query, cookie or body, and keeps no part of its header in memory.',
    reason: 'C9; a short text that is cut out of a header would keep all of it alive',
  },
} as const satisfies Readonly<Record<`H${number}`, Promised>>
