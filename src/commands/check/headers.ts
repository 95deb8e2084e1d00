import { leftOut } from '../../config/header-field.ts'
import { CHROMIUM, CURL, sampleSize } from '../../forward/sample-heads.ts'
import { readRequestFields } from '../../forward/service-settings.ts'
import { check } from './part.ts'
import { allServices } from './services.ts'

/** Whether the files of `headers` are readable, and how large the heads of requests are. */
export const HEADERS = check({
  withReload: true,
  subjects: allServices,
  about: ({ key, of }) => ({
    name: `upstream headers${of}`,
    key: `${key}.headers`,
    meaning: 'serve does not start',
    remedy: `correct the file, or ${key}.headers`,
  }),
  async look({ service, key }) {
    const settings = await readRequestFields(service, key)
    const [curl = 0, browser = 0] = [CURL, CHROMIUM].map((sample) => sampleSize(sample, settings, service))
    return { added: settings.added.length / 2, left: leftOut(service.headers), curl, browser }
  },
  rows: {
    readable({ added, left, curl, browser }) {
      const set = added === 0 ? [] : [`${added} set on every request`]
      const without = left.length === 0 ? [] : [`left out: ${left.join(', ')}`]
      return `${[...set, ...without].join('; ') || 'none'}; the head of a GET has ${curl} bytes from curl, ${browser} from Chromium`
    },
  },
})
