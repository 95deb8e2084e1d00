/** The one content type of JSON answers, spelt as the device's document spells it. */
export const JSON_TYPE = 'application/json;charset=UTF-8'
