import { chart, figure, type Row } from '../panels.ts'
import { at, events, rate, total } from '../queries.ts'

export const TOKENS: Row = {
  title: 'Tokens',
  panels: [
    chart({
      title: 'Live tokens',
      description:
        'Tokens that have not expired, by kind. A refresh token is one client that is logged in. At tokens.capacity the oldest are dropped.',
      unit: 'short',
      queries: [{ expr: total('postern_tokens', 'instance, kind'), legend: '{{instance}} {{kind}}' }],
    }),
    chart({
      title: 'Token responses',
      description:
        'Logins ("password"), refreshes ("refresh_token") and tokens of postern issue ("issued"). A client that logs in for every request shows as many logins as requests.',
      unit: 'short',
      queries: [{ expr: events('postern_tokens_issued_total', 'grant'), legend: '{{grant}}' }],
    }),
    chart({
      title: 'Wrong passwords',
      description:
        'Somebody guesses, or a client has an old password. See docs/alerts.md#posternpasswordguessing.',
      unit: 'short',
      queries: [
        { expr: events('postern_password_failures_total', 'instance'), legend: '{{instance}}' },
        { expr: events('postern_logins_slowed_total', 'instance'), legend: '{{instance}}: slowed' },
        { expr: total('postern_guessing_addresses', 'instance'), legend: '{{instance}}: addresses' },
      ],
    }),
    chart({
      title: 'Logins revoked',
      description:
        'Revoked by a changed password, by an operator, by the client, or because a spent refresh token was used again; and the requests, streams and WebSockets that ended with them, at an expiry, by a reload, or (WebSockets) because they were idle. See docs/operating.md#a-token-has-leaked.',
      unit: 'short',
      queries: [
        { expr: events('postern_tokens_revoked_total', 'reason'), legend: '{{reason}}' },
        { expr: events('postern_requests_ended_total', 'reason'), legend: 'ended: {{reason}}' },
      ],
      empty: 'none so far',
    }),
    chart({
      title: 'Tokens dropped',
      description: 'Live tokens dropped at tokens.capacity. See docs/alerts.md#posterntokensevicted.',
      unit: 'short',
      queries: [
        { expr: events('postern_tokens_evicted_total', 'instance, kind'), legend: '{{instance}} {{kind}}' },
      ],
    }),
    chart({
      title: 'Failures of the stores',
      description:
        'The token file ("file"), the password ("password") or the shared store ("shared"). See docs/alerts.md#posternstoreerrors.',
      unit: 'short',
      queries: [
        {
          expr: `${events('postern_store_errors_total', 'instance, store, operation')} > 0`,
          legend: '{{instance}} {{store}}: {{operation}}',
        },
      ],
    }),
    chart({
      title: 'Requests by name',
      description:
        'Requests with a token of a name of passwords, and those that the name may not make, that are over its limit, or could not if its allow were not on trial. Only with passwords: docs/hardening.md#one-password-for-each-purpose.',
      unit: 'reqps',
      span: 24,
      queries: [
        { expr: rate('postern_named_requests_total', 'name, result'), legend: '{{name}}: {{result}}' },
      ],
      empty: 'no names',
    }),
    figure({
      title: 'Tokens that a restart would lose',
      description:
        'Tokens that are not in the token file because it cannot be written. See docs/operating.md#the-token-file-cannot-be-written.',
      unit: 'short',
      span: 12,
      queries: [{ expr: `sum(${at('postern_tokens_unsaved')})`, legend: 'unsaved' }],
      steps: [[1, 'red']],
      empty: 'no token file',
    }),
    figure({
      title: 'Tokens of postern issue',
      description: 'Valid now, of at most 100. No login drops them. See docs/issuing.md.',
      unit: 'short',
      span: 12,
      queries: [{ expr: `max(${at('postern_issued_tokens')})`, legend: 'issued' }],
      steps: [],
    }),
    figure({
      title: 'First issued token to end',
      description:
        'Until then it needs a successor with the same label. Only tokens that were issued for more than two weeks. See docs/alerts.md#posternissuedtokenends.',
      unit: 's',
      span: 12,
      queries: [
        {
          expr: `min(${at('postern_issued_token_expiry_timestamp_seconds')}) - time()`,
          legend: 'ends in',
        },
      ],
      steps: [],
      empty: 'none',
    }),
    figure({
      title: 'Failed readings of the password',
      description:
        'Since the start of the sidecars. The last good password stays valid: docs/operating.md#the-password-changes.',
      unit: 'short',
      span: 12,
      queries: [
        {
          expr: `sum(${at('postern_store_errors_total', 'store="password"')})`,
          legend: 'failures',
        },
      ],
      steps: [[1, 'orange']],
    }),
  ],
}
