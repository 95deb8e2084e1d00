import { expect, it } from 'vitest'
import { renderHead, UnsendableHeadError } from '../../src/http1/response-writer.ts'

const FACTS = { method: 'GET', oldClient: false, keepAliveFields: undefined, date: '', own: '' }

it.each(['Connection', 'transfer-encoding', 'TRANSFER-ENCODING', '', 'X Y'])(
  'H101 a response with a field "%s" is refused on every attempt',
  (name) => {
    const render = () => renderHead({ status: 200, reason: 'OK', fields: [name, 'x'] }, 0, FACTS)
    for (let i = 0; i < 3; i += 1) expect(render).toThrow(UnsendableHeadError)
  },
)
