import { isAmbiguousPath } from '../http/request-path.ts'
import { section } from './field.ts'
import { duration, list, parseBy } from './value-fields.ts'

export const shareField = section(
  'Identical questions become one: while a GET or HEAD for one of these paths is at the device, requests that the device would see as the same wait for its response. See docs/sharing.md.',
  {
    paths: list({
      type: 'paths',
      must: 'must be text',
      parse: parseBy(plainPathProblem),
      default: [],
      description:
        'The paths: exactly this one or, if it ends with a slash, everything below it. Only paths that read: with one that acts, such as `/reboot`, the device acts once for several clients.',
    }),
    for: duration(
      { least: '0s', most: '1h' },
      {
        default: '0s',
        description:
          'How long a whole response of up to 128 KiB is kept after it came, unless it is 500 or above or says `no-store`: the time between two polls, or a part of it. Any change through Postern ends it.',
      },
    ),
  },
)

const REQUEST_PATH = 'must be a path such as /login, or /static/ for everything below it'

/** Why a text is not the path of a request; `undefined` if it is one. */
export function requestPathProblem(given: string): string | undefined {
  return /^\/[!$&'()*+,\-./0-9:;=@A-Z_a-z~%]*$/.test(given) ? undefined : REQUEST_PATH
}

/** Why no request has this path, or why two programs could read it differently; undefined if neither. */
export function plainPathProblem(path: string): string | undefined {
  const problem = requestPathProblem(path)
  if (problem !== undefined || !isAmbiguousPath(path)) return problem
  return 'must be a plain path, without dot segments, empty segments or escapes'
}
