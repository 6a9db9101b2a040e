package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

const (
	keyBytes   = 16
	nonceBytes = 12
)

// SecretBytes is the length of a Secret.
const SecretBytes = sha256.Size

// Secret is the secret from which the keys of one direction in one epoch are derived
// (HKDF-SHA-256, RFC 5869). The two directions must have different secrets; otherwise a reflected
// frame would pass.
type Secret [SecretBytes]byte

// Derive returns a secret for a purpose. info must identify the purpose uniquely.
func (s Secret) Derive(info []byte) (Secret, error) {
	var out Secret
	b, err := hkdf.Expand(sha256.New, s[:], string(info), len(out))
	copy(out[:], b)
	return out, err
}

// Extract returns a secret derived from private material of two ends.
func Extract(material, salt []byte) (Secret, error) {
	var out Secret
	b, err := hkdf.Extract(sha256.New, material, salt)
	copy(out[:], b)
	return out, err
}

// key seals or opens the frames of one phase: KeyFrames numbers in a row.
type key struct {
	phase uint64
	aead  cipher.AEAD
	iv    [nonceBytes]byte
	nonce [nonceBytes]byte // scratch, of the present frame
}

func (s *Secret) newKey(phase uint64) (*key, error) {
	info := binary.BigEndian.AppendUint64([]byte("p2pdc seal key "), phase)
	b, err := hkdf.Expand(sha256.New, s[:], string(info), keyBytes+nonceBytes)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	k := &key{phase: phase, iv: [nonceBytes]byte(b[keyBytes:])}
	block, err := aes.NewCipher(b[:keyBytes])
	if err == nil {
		k.aead, err = cipher.NewGCM(block)
	}
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return k, nil
}

// number returns the nonce of a frame (RFC 8446 §5.3).
func (k *key) number(n uint64) []byte {
	k.nonce = k.iv
	tail := k.nonce[nonceBytes-8:]
	binary.BigEndian.PutUint64(tail, binary.BigEndian.Uint64(tail)^n)
	return k.nonce[:]
}
