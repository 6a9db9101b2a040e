package iterate

// DecodeMessage is decodeMessage, for the external tests of the codec.
var DecodeMessage = decodeMessage
