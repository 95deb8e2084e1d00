import type { Source } from '../requirement.ts'

export const RFC_9700: Source = {
  name: 'RFC 9700',
  title: 'Best Current Practice for OAuth 2.0 Security',
  version: 'January 2025, BCP 240.',
  readAt: 'https://www.rfc-editor.org/rfc/rfc9700',
  requirements: {
    '2.2.2': {
      says: 'Refresh tokens for public clients must be bound to their sender or change with each use.',
      status: 'not met',
      reason:
        'The documented API of the devices has one refresh token for the whole login. `tokens.rotate_refresh: true` changes it with each use, for clients that expect it.',
      promises: ['C6'],
    },
    '2.4': {
      says: 'The password grant must not be used.',
      status: 'not met',
      reason: 'The documented API of the devices has no other grant.',
    },
  },
}
